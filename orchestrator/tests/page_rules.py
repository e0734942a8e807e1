# SPDX-License-Identifier: Apache-2.0
"""Rules for a page that a browser can look up (WCAG 2.2): JavaScript that gives what breaks them."""

SKIPPED_HEADINGS = """
(() => {
  const headings = [...document.querySelectorAll('h1, h2, h3, h4, h5, h6')];
  const levels = headings.map(e => [Number(e.tagName[1]), e.textContent]);
  return levels.filter(([level], i) => level > (i ? levels[i - 1][0] : 0) + 1).map(([, text]) => text);
})()
"""
"""1.3.1: headings in order, no level left out."""

UNNAMED = """
[...document.querySelectorAll('svg, button, a, summary, [role=group], dialog')]
  .filter(e => !(e.getAttribute('aria-label') || e.getAttribute('aria-labelledby') || e.textContent.trim()))
  .map(e => e.outerHTML.slice(0, 100))
"""
"""1.1.1 and 4.1.2: what is drawn and what can be used has a name."""

LOW_CONTRAST = """
(() => {
  const numbers = color => color.match(/[0-9.]+/g).map(Number);
  const light = color => {
    const linear = c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    const [r, g, b] = numbers(color).map(c => linear(c / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = element => {
    for (let e = element; e; e = e.parentElement) {
      const color = getComputedStyle(e).backgroundColor;
      if ((numbers(color)[3] ?? 1) > 0) return color;
    }
    return 'rgb(255, 255, 255)';
  };
  const found = new Set();
  for (const e of document.querySelectorAll('body *')) {
    const own = [...e.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
    // Drawings have a white ground of their own, whatever the page's.
    if (!own || e.closest('svg, script') || !e.checkVisibility()) continue;
    const style = getComputedStyle(e);
    const [low, high] = [light(style.color), light(ground(e))].sort((a, b) => a - b);
    const pixels = parseFloat(style.fontSize);
    const large = pixels >= 24 || (pixels >= 18.66 && style.fontWeight >= 700);
    const ratio = (high + 0.05) / (low + 0.05);
    if (ratio < (large ? 3 : 4.5)) found.add(`${e.tagName}.${e.className} ${style.color} ${ratio}`);
  }
  return [...found];
})()
"""
"""1.4.3: contrast of words and their ground, at least 4.5 to 1, large ones 3 to 1."""
