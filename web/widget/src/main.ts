// Script that pages embed: creates a widget for its own tag, and the object that pages call.

import type { EventName, Events } from "./emitter.ts";
import type { Draw } from "./log.ts";
import { type Options, type Parts, Widget } from "./widget.ts";

declare const PANEL_FILE: string;
declare const MARKDOWN_FILE: string;
declare const LANGUAGES_FILE: string;
declare const FILES_FILE: string;
declare const VERSION: string;

class SwitchboardWidgets {
  readonly version = VERSION;
  private readonly widgets: Widget[] = [];

  /** Creates a widget; one per agent. */
  create(options: Options, parts: Parts = ownParts): Widget {
    const known = this.get(options.agentId);
    if (known) {
      known.stay();
      return known;
    }
    const widget = new Widget(options, parts, (changed) => this.arrange(changed));
    this.widgets.push(widget);
    // The widget needs the body, and a script in the head runs before it.
    if (document.body) void widget.start();
    else document.addEventListener("DOMContentLoaded", () => void widget.start(), { once: true });
    return widget;
  }

  /** Returns the widget of an agent, or the first one. */
  get(agentId?: string): Widget | undefined {
    return this.widgets.find((widget) => agentId === undefined || widget.options.agentId === agentId);
  }

  /** Runs a call immediately, so that queued calls also work after loading. */
  push(call: (widgets: SwitchboardWidgets) => void): void {
    call(this);
  }

  open(agentId?: string): void {
    this.get(agentId)?.open();
  }

  close(agentId?: string): void {
    this.get(agentId)?.close();
  }

  toggle(agentId?: string): void {
    this.get(agentId)?.toggle();
  }

  send(text: string, agentId?: string): void {
    this.get(agentId)?.send(text);
  }

  on<N extends EventName>(name: N, listener: (event: Events[N]) => void, agentId?: string): () => void {
    return this.get(agentId)?.on(name, listener) ?? (() => false);
  }

  destroy(agentId?: string): void {
    this.get(agentId)?.destroy();
  }

  /** Widgets in one corner are placed side by side, and only one of them is open. */
  private arrange(changed: Widget): void {
    if (changed.isDestroyed) {
      const at = this.widgets.indexOf(changed);
      if (at >= 0) this.widgets.splice(at, 1);
    }
    for (const widget of this.widgets) {
      const neighbors = this.widgets.filter((other) => other.hasButton && other.corner === widget.corner);
      widget.stack(Math.max(0, neighbors.indexOf(widget)));
      if (changed.isShown && widget !== changed && widget.isShown && widget.corner === changed.corner) widget.close();
    }
  }
}

const script = document.currentScript as HTMLScriptElement | null;
const base = (script?.src ?? location.href).replace(/\/v1\/[^/]*(\/[^/]*)?$/, "");
const ownParts: Parts = {
  base,
  panel: part<typeof import("./panel.ts")>(PANEL_FILE),
  markdown: part<{ render: Draw }>(MARKDOWN_FILE),
  languages: part<typeof import("./languages.ts")>(LANGUAGES_FILE),
  files: part<typeof import("./files/files.ts")>(FILES_FILE),
};

/** Loads a part on first use, and again after a failure. */
function part<T>(file: string): () => Promise<T> {
  let loading: Promise<T> | null = null;
  let tries = 0;
  return () => {
    // Some browsers cache failed imports forever.
    const address = `${base}/v1/widget/${file}${tries > 0 ? `?try=${tries}` : ""}`;
    loading ??= (import(address) as Promise<T>).catch((error: unknown) => {
      loading = null;
      tries += 1;
      throw error;
    });
    return loading;
  };
}

const page = window as { SwitchboardWidget?: unknown };
const before = page.SwitchboardWidget;
// A second tag with this script finds the object of the first one.
const widgets = before && typeof before === "object" && "create" in before ? (before as SwitchboardWidgets) : new SwitchboardWidgets();
page.SwitchboardWidget = widgets;
const { agentId, apiKey, baseUrl, language } = script?.dataset ?? {};
if (agentId) widgets.create({ agentId, apiKey: apiKey ?? null, baseUrl: baseUrl ?? null, language: language ?? null });
// Calls that the page queued before the script was loaded.
if (Array.isArray(before)) for (const call of before) if (typeof call === "function") call(widgets);
