// Synchronizes the tabs of one page.

import type { Attachment } from "./conversation.ts";
import { fields } from "./settings.ts";

/** A message was sent, and this is its reply. */
export interface SentMessage {
  kind: "turn";
  session: string;
  text: string;
  attachments: Attachment[];
  at: number;
  reply: string;
}

export type TabMessage =
  | SentMessage
  /** The visitor started a new conversation, or gave an address or a rating: reread. Storage may still have the
   * old value, because browsers propagate its changes later than messages. */
  | { kind: "changed"; session: string | null; next?: string };

export class Tabs {
  private readonly channel: BroadcastChannel | null;

  constructor(owner: string, heard: (news: TabMessage) => void) {
    this.channel = open(`switchboard:${owner}`);
    if (this.channel) this.channel.onmessage = ({ data }) => "kind" in fields(data) && heard(data as TabMessage);
  }

  tell(news: TabMessage): void {
    this.channel?.postMessage(news);
  }

  close(): void {
    this.channel?.close();
  }
}

/** Without storage, tabs are not synchronized. */
function open(name: string): BroadcastChannel | null {
  try {
    return new BroadcastChannel(name);
  } catch {
    return null;
  }
}
