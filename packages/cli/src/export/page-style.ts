/** The style of the exported page, for light and dark screens and for paper. */
export const style = `
:root { color-scheme: light dark; --page: #ffffff; --ink: #1c1e21; --soft: #57606a; --line: #d0d7de; --panel: #f6f8fa; --prompt: #eaf3ff; --accent: #0a58ca; --bad: #b42318; --warn: #8a5300; --good: #1a6e37; }
@media (prefers-color-scheme: dark) { :root { --page: #0f1318; --ink: #e4e8ec; --soft: #9aa5b1; --line: #303842; --panel: #181e25; --prompt: #15263c; --accent: #7ab7ff; --bad: #ff8f85; --warn: #f0b655; --good: #75d092; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.6 system-ui, sans-serif; overflow-wrap: break-word; }
main, body > header, body > footer { max-width: 54rem; margin: 0 auto; padding: 0 1rem; }
body > header { padding-top: 2rem; }
body > footer { padding-bottom: 3rem; color: var(--soft); font-size: .875rem; }
h1 { font-size: 1.75rem; line-height: 1.25; margin: 0 0 1rem; }
h2 { font-size: 1.125rem; margin: 2.5rem 0 1rem; padding-top: 1rem; border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 0 0 .25rem; }
h4, h5, h6 { font-size: 1rem; margin: 1.25rem 0 .5rem; }
time, .aside, .state { color: var(--soft); font-size: .875rem; font-weight: normal; }
.aside { font-style: italic; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1rem; margin: 0 0 1rem; font-size: .9375rem; }
dt { color: var(--soft); }
dd { margin: 0; min-width: 0; }
.warning { border-left: 4px solid var(--warn); background: var(--panel); padding: .5rem 1rem; margin: 1rem 0; }
.incomplete { color: var(--warn); font-weight: 600; }
article { margin: 0 0 1.5rem; }
article.prompt { background: var(--prompt); border-radius: .5rem; padding: .75rem 1rem; }
article.note, article.reasoning { color: var(--soft); }
article.call { margin-bottom: 1rem; }
details { border: 1px solid var(--line); border-radius: .5rem; background: var(--panel); }
summary { cursor: pointer; padding: .5rem 1rem; }
summary:focus-visible, a:focus-visible, pre:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
details > :not(summary) { margin-left: 1rem; margin-right: 1rem; }
pre, code { font: .875rem/1.5 ui-monospace, monospace; }
pre { background: var(--panel); border: 1px solid var(--line); border-radius: .5rem; padding: .75rem 1rem; overflow-x: auto; }
details pre { background: var(--page); max-height: 40rem; overflow: auto; }
pre.words { white-space: pre-wrap; border: 0; background: none; padding: 0; font: inherit; margin: .25rem 0; max-height: none; }
:not(pre) > code { background: var(--panel); border-radius: .25rem; padding: .1rem .3rem; }
.state.done { color: var(--good); } .state.failed, .state.denied { color: var(--bad); } .state.unknown, .state.waiting, .state.not-run { color: var(--warn); }
a { color: var(--accent); }
.address { color: var(--soft); font-size: .875rem; }
img { max-width: 100%; height: auto; border: 1px solid var(--line); border-radius: .5rem; }
figure { margin: .75rem 0; } figcaption { color: var(--soft); font-size: .875rem; }
table { border-collapse: collapse; display: block; overflow-x: auto; } th, td { border: 1px solid var(--line); padding: .25rem .75rem; text-align: left; }
blockquote { margin: .5rem 0; padding-left: 1rem; border-left: 3px solid var(--line); color: var(--soft); }
@media print { details::details-content { content-visibility: visible; display: block; height: auto; } pre, details pre { max-height: none; white-space: pre-wrap; } article { break-inside: avoid-page; } }
`;
