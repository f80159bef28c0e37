;; Copies a text as UTF-8 and escapes it as JSON does between the quotation marks: control characters, the quotation
;; mark and the backslash. All other bytes stay as they are, and no byte of a longer character is one of these.
;;
;; `npm run wasm` assembles this file into escape-module.ts.
(module
  (memory (export "memory") 20)

  ;; At address c: what stands behind the backslash in place of the byte c, if it must be escaped.
  (data (i32.const 0) "uuuuuuuubtnufruuuuuuuuuuuuuuuuuu")
  (data (i32.const 0x22) "\22")
  (data (i32.const 0x5c) "\5c")

  ;; Reads `length` bytes at `from`, and writes at most six times as many at `to`. Returns where they end. Both places
  ;; must have 16 bytes to spare, and may not overlap: blocks are copied as a whole before they are looked at.
  (func (export "escapeText") (param $from i32) (param $length i32) (param $to i32) (result i32)
    (local $end i32)
    (local $left i32)
    (local $found i32)
    (local $byte i32)
    (local $letter i32)
    (local $block v128)
    (local.set $end (i32.add (local.get $from) (local.get $length)))
    (block $done
      (loop $next
        (br_if $done (i32.le_s (local.tee $left (i32.sub (local.get $end) (local.get $from))) (i32.const 0)))
        (v128.store align=1 (local.get $to) (local.tee $block (v128.load align=1 (local.get $from))))
        ;; One bit for each byte that must be escaped.
        (local.set $found
          (i8x16.bitmask
            (v128.or
              (i8x16.lt_u (local.get $block) (v128.const i8x16 32 32 32 32 32 32 32 32 32 32 32 32 32 32 32 32))
              (v128.or
                (i8x16.eq (local.get $block) (v128.const i8x16 34 34 34 34 34 34 34 34 34 34 34 34 34 34 34 34))
                (i8x16.eq (local.get $block) (v128.const i8x16 92 92 92 92 92 92 92 92 92 92 92 92 92 92 92 92))))))
        ;; As many bytes as are fine: up to the first such bit, the end of the block, or the end of the text.
        (local.set $found (i32.ctz (i32.or (local.get $found) (i32.const 0x10000))))
        (if (i32.ge_s (local.get $found) (local.get $left))
          (then
            (local.set $to (i32.add (local.get $to) (local.get $left)))
            (br $done)))
        (local.set $from (i32.add (local.get $from) (local.get $found)))
        (local.set $to (i32.add (local.get $to) (local.get $found)))
        (br_if $next (i32.eq (local.get $found) (i32.const 16)))
        (local.set $letter (i32.load8_u (local.tee $byte (i32.load8_u (local.get $from)))))
        (local.set $from (i32.add (local.get $from) (i32.const 1)))
        (i32.store16 align=1 (local.get $to) (i32.or (i32.const 0x5c) (i32.shl (local.get $letter) (i32.const 8))))
        (if (i32.eq (local.get $letter) (i32.const 0x75))
          (then
            ;; \u00 and two hexadecimal digits, the first of which is 0 or 1.
            (i32.store16 offset=2 align=1 (local.get $to) (i32.const 0x3030))
            (i32.store8 offset=4 (local.get $to)
              (i32.add (i32.const 0x30) (i32.shr_u (local.get $byte) (i32.const 4))))
            (local.set $byte (i32.and (local.get $byte) (i32.const 15)))
            (i32.store8 offset=5 (local.get $to)
              (i32.add (local.get $byte)
                (select (i32.const 0x30) (i32.const 0x57) (i32.lt_u (local.get $byte) (i32.const 10)))))
            (local.set $to (i32.add (local.get $to) (i32.const 6))))
          (else
            (local.set $to (i32.add (local.get $to) (i32.const 2)))))
        (br $next)))
    (local.get $to)))
