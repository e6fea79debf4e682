//! What the pages of `report` and `reproduce` have in common.

use std::io::{self, Write};

use stats::figure::style;

/// The style of every page that this program writes.
const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:15px/1.5 system-ui,'DejaVu Sans',sans-serif;max-width:62rem;margin:2rem auto;\
padding:0 1rem;color:#1a1a1a;background:#fff}\
h1{font-size:1.6rem;margin:0 0 .5rem}h2{font-size:1.25rem;margin:2.5rem 0 .25rem;\
border-top:1px solid #ccc;padding-top:1.25rem}\
p.where,figcaption,footer{color:#5a5a5a;font-size:.85rem}\
nav ul{padding-left:1.2rem}\
figure{margin:1.5rem 0 2rem}svg{width:100%;height:auto;display:block}\
.scroll{overflow-x:auto}table{border-collapse:collapse;font-size:.8rem;\
font-variant-numeric:tabular-nums;margin:.75rem 0}\
th,td{padding:.2rem .55rem;text-align:right;white-space:nowrap;border-bottom:1px solid #e2e2e2}\
th:first-child,td:first-child,caption{text-align:left}caption{font-weight:600}\
@media (prefers-color-scheme:dark){body{color:#ececec;background:#17191c}\
h2{border-color:#3a3d42}p.where,figcaption,footer{color:#a8a8a8}th,td{border-color:#3a3d42}\
a{color:#8cc4ff}}\
@media print{figure{break-inside:avoid}}";

/// Writes what every page of ours begins with: a policy of its own that forbids that anything is
/// fetched or executed, the title, the style with `more` behind it, and the heading. Both texts
/// are HTML.
///
/// # Errors
/// When `to` does not take it.
pub fn head(title: &str, more: &str, heading: &str, to: &mut dyn Write) -> io::Result<()> {
    write!(
        to,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>{STYLE}{more}\n{}</style>\n</head>\n<body>\n\
         <h1>{heading}</h1>\n",
        style()
    )
}
