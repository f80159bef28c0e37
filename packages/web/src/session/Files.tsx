import type { ShownFile } from "../api/wire.ts";
import { Icon } from "../parts/Icon.tsx";

/** SVG is left out: it is a document, and can hold more than a picture. */
const IMAGES = /^image\/(?:png|jpeg|gif|webp|avif)$/;

/** Files of a message: pictures that the message itself holds are shown; nothing is loaded from elsewhere. */
export function Files({ files }: { readonly files: readonly ShownFile[] | undefined }) {
  if (!files || files.length === 0) return null;
  return (
    <div class="files">
      {files.map(({ name, mediaType, data, url, bytes }, index) =>
        data !== undefined && IMAGES.test(mediaType) ? (
          <figure key={index}>
            <img src={`data:${mediaType};base64,${data}`} alt={name ?? "An image of this message"} loading="lazy" />
            {name ? <figcaption>{name}</figcaption> : null}
          </figure>
        ) : (
          <span key={index} class="file-chip">
            <Icon name="file" />
            {name ?? url ?? "File"} · {mediaType}
            {bytes === undefined ? "" : ` · ${bytes.toLocaleString("en")} bytes`}
          </span>
        ),
      )}
    </div>
  );
}
