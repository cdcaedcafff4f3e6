// Tells the other tabs of the same page what a visitor did in this one.

import { fields } from "./settings.ts";

/** A message was sent, and this is its reply. */
export interface Turn {
  kind: "turn";
  session: string;
  text: string;
  at: number;
  reply: string;
}

export type News =
  | Turn
  /** The visitor began a new conversation, gave an address or a rating: look again. The storage may still hold what it
   * held before: browsers hand its changes on later than messages. */
  | { kind: "changed"; session: string | null };

export class Tabs {
  private readonly channel: BroadcastChannel | null;

  constructor(owner: string, heard: (news: News) => void) {
    this.channel = open(`switchboard:${owner}`);
    if (this.channel) this.channel.onmessage = ({ data }) => "kind" in fields(data) && heard(data as News);
  }

  tell(news: News): void {
    this.channel?.postMessage(news);
  }

  close(): void {
    this.channel?.close();
  }
}

/** Where storage is blocked, tabs do not hear of each other either. */
function open(name: string): BroadcastChannel | null {
  try {
    return new BroadcastChannel(name);
  } catch {
    return null;
  }
}
