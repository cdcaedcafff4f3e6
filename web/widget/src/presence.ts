// Keeps the element of a widget in the page. Pages that navigate without a reload replace their body, or remove
// elements that they do not know.

/** Returns per period. A page that always removes the widget must not be kept busy. */
const RETURNS_MAX = 10;
const RETURNS_PERIOD_MS = 1_000;

export class Presence {
  private readonly observer = new MutationObserver(() => this.ensure());
  private returns = 0;
  private timer = 0;

  constructor(
    private readonly host: Element,
    private readonly returned: () => void,
  ) {}

  /** Puts the element into the current body, unless it is there. */
  ensure(): void {
    const { documentElement, body } = document;
    // Snapshots of a page copy its elements without their shadow roots.
    for (const copy of [...document.getElementsByTagName(this.host.tagName)]) if (!copy.shadowRoot) copy.remove();
    if (body && !this.host.isConnected && this.returns < RETURNS_MAX) {
      this.returns += 1;
      this.timer ||= window.setTimeout(() => {
        this.timer = this.returns = 0;
        this.ensure();
      }, RETURNS_PERIOD_MS);
      body.append(this.host);
      this.returned();
    }
    this.observer.disconnect();
    for (const parent of [document, documentElement, body]) if (parent) this.observer.observe(parent, { childList: true });
  }

  end(): void {
    clearTimeout(this.timer);
    this.observer.disconnect();
    this.host.remove();
  }
}
