// Stored values of a visitor. If the browser blocks storage, they last until the visitor leaves the page.

const PREFIX = "switchboard:";

type Area = "lasting" | "tab";

/** Stores values of one widget: `lasting` ones for all tabs and visits, `tab` ones until the tab is closed. */
export class Memory {
  private readonly fallback = new Map<string, string>();

  constructor(private readonly owner: string) {}

  get(key: string, area: Area = "lasting"): string | null {
    const name = this.name(key);
    try {
      return storage(area).getItem(name) ?? this.fallback.get(area + name) ?? null;
    } catch {
      return this.fallback.get(area + name) ?? null;
    }
  }

  set(key: string, value: string | null, area: Area = "lasting"): void {
    const name = this.name(key);
    if (value === null) this.fallback.delete(area + name);
    try {
      if (value === null) storage(area).removeItem(name);
      else storage(area).setItem(name, value);
    } catch {
      if (value !== null) this.fallback.set(area + name, value);
    }
  }

  private name(key: string): string {
    return `${PREFIX}${this.owner}:${key}`;
  }
}

function storage(area: Area): Storage {
  // Reading the property throws if storage is blocked.
  return area === "lasting" ? localStorage : sessionStorage;
}

/** Returns 128 random bits as an unguessable id. */
export function randomId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
