// Unpacks the Chromium of npm's @sparticuz/chromium into <directory>/chromium, with its libraries and fonts.
import { mkdirSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const tools = resolve(process.argv[2]);
const target = `${tools}/chromium`;
mkdirSync(target, { recursive: true });
process.env.TMPDIR = target; // where the package unpacks
process.env.AWS_LAMBDA_JS_RUNTIME = "nodejs22.x"; // else it leaves out its libraries
const { default: chromium } = await import(pathToFileURL(`${tools}/node_modules/@sparticuz/chromium/build/index.js`));
await chromium.executablePath();

// Its own names other directories; without a font, Chromium renders no text at all.
const fonts = ["/usr/share/fonts", `${target}/fonts`].map((path) => `<dir>${path}</dir>`).join("");
writeFileSync(
  `${target}/fonts/fonts.conf`,
  `<?xml version="1.0"?><fontconfig>${fonts}<cachedir>${target}/fonts-cache</cachedir></fontconfig>`,
);
