// Draws one diagram in a frame that has no origin, no network and no access to the page.

// A label can only break its line; what else it brings as markup would run into the frame's content policy.
const TAGS = /(?<!<)<\/?(?!br\b)[a-z][^<>]*>/gi;

const tell = (message) => parent.postMessage(message, "*");

async function draw({ text, theme, scheme }) {
  document.documentElement.style.colorScheme = scheme;
  mermaid.initialize({ startOnLoad: false, securityLevel: "strict", theme: "base", themeVariables: theme, fontFamily: theme.fontFamily, maxTextSize: 50_000 });
  try {
    const { svg } = await mermaid.render("diagram", text.replace(TAGS, ""));
    document.body.innerHTML = svg;
    const drawing = document.body.firstElementChild;
    tell({ height: Math.ceil(drawing.getBoundingClientRect().height) });
  } catch (error) {
    tell({ error: String(error?.message ?? error) });
  }
}

document.documentElement.style.cssText = "margin: 0; overflow: hidden; background: transparent";
addEventListener("DOMContentLoaded", () => {
  document.body.style.cssText = "margin: 0; display: grid; justify-items: center";
  tell({ ready: true });
});
addEventListener("message", (event) => { if (event.source === parent) draw(event.data); });
