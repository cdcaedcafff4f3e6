//! Examples of the document. The integration suite sends the requests to a running service and
//! compares the responses with the schemas; a unit test compares the responses among the examples
//! with the schemas.

use serde_json::{Value, json};

const AGENT: &str = "agt_77777777777777777777777777";
const CONVERSATION: &str = "conv_77777777777777777777777777";
const QUESTION: &str = "msg_7777777777777777777777777766666666666666666666666666";
const REPLY: &str = "msg_7777777777777777777777777777777777777777777777777777";

/// Returns example bodies of requests to an operation, by name.
pub(super) fn requests(operation: &str) -> Vec<(&'static str, Value)> {
    match operation {
        "chatWithAgent" => vec![
            (
                "short",
                json!({ "message": "Hello! What can you do?", "sessionId": "session-1" }),
            ),
            (
                "visitor",
                json!({
                    "message": "Do you ship to Norway?", "sessionId": "session-2", "visitorId": "visitor-7",
                    "visitorEmail": "ada@example.org", "visitorName": "Ada", "metadata": { "page": "/pricing" },
                }),
            ),
            (
                "whole",
                json!({ "message": "Say it at once.", "sessionId": "session-3", "stream": false }),
            ),
        ],
        "chatWithTeam" => vec![
            (
                "short",
                json!({ "message": "My invoice is wrong.", "sessionId": "session-4" }),
            ),
            (
                "whole",
                json!({ "message": "Which one of you is it?", "sessionId": "session-5", "stream": false }),
            ),
        ],
        "updateConversation" => vec![
            (
                "rating",
                json!({ "rating": 5, "feedback": "Quick and friendly." }),
            ),
            (
                "visitor",
                json!({ "visitorEmail": "ada@example.org", "visitorName": "Ada" }),
            ),
            (
                "metadata",
                json!({ "metadata": { "plan": "pro", "seats": 12 } }),
            ),
            ("clear", json!({ "feedback": null })),
        ],
        "createVisitorToken" => vec![("new", json!({ "agentId": AGENT }))],
        _ => vec![],
    }
}

/// Returns the example of a successful response of an operation.
pub(super) fn response(operation: &str, status: &str, media_type: &str) -> Option<Value> {
    match (operation, status, media_type) {
        ("getAgent", "200", _) => Some(agent()),
        ("getWidget", "200", _) => Some(widget()),
        ("getConversation", "200", _) => Some(conversation()),
        ("updateConversation", "200", _) => {
            Some(json!({ "success": true, "updated": { "rating": 5 } }))
        }
        ("createVisitorToken", "200", _) => Some(visitor_token()),
        ("chatWithAgent" | "chatWithTeam" | "streamMessage", "200", "text/plain") => {
            Some("Yes, we ship to Norway.".into())
        }
        ("chatWithAgent" | "chatWithTeam" | "streamMessage", "200", "text/event-stream") => {
            Some(events().into())
        }
        ("chatWithAgent" | "chatWithTeam" | "getMessage" | "cancelMessage", "200", _) => {
            Some(reply())
        }
        (_, "202", _) => {
            Some(json!({ "messageId": REPLY, "conversationId": CONVERSATION, "status": "queued" }))
        }
        _ => None,
    }
}

fn agent() -> Value {
    json!({
        "id": AGENT,
        "name": "Shop guide",
        "description": "Knows the catalogue.",
        "welcomeMessage": "Hello! How can I help you?",
        "placeholderText": "Type your message…",
        "theme": {
            "primaryColor": "#2563eb", "backgroundColor": "#ffffff", "textColor": "#111827", "borderRadius": "12px",
            "fontFamily": "system-ui, sans-serif", "chatHeaderColor": "#2563eb", "userMessageColor": "#2563eb",
            "botMessageColor": "#f3f4f6", "inputBackgroundColor": "#ffffff", "sendButtonColor": "#2563eb",
        },
        "features": {
            "enableMarkdown": true, "enableFileUpload": false, "enableEmailCapture": false, "enableRating": true,
            "enableLeadCapture": false,
        },
        "limits": { "maxMessageLength": 4000, "rateLimitPerMinute": 30 },
    })
}

fn widget() -> Value {
    json!({
        "id": AGENT,
        "name": "Shop guide",
        "description": "Knows the catalogue.",
        "welcomeMessage": "Hello! How can I help you?",
        "placeholderText": "Type your message…",
        "theme": { "primaryColor": "#2563eb", "backgroundColor": "#ffffff", "textColor": "#111827" },
        "widget": {
            "position": "bottom-right", "size": "medium", "showAvatar": true, "showTimestamp": false,
            "enableMarkdown": true, "enableFileUpload": false, "enableEmailCapture": false, "enableRating": true,
            "showPoweredBy": true, "maxMessageLength": 4000, "rateLimitPerMinute": 30, "autoOpen": false,
            "autoOpenDelay": 3000, "triggerText": "Chat with us",
            "offlineMessage": "We are away at the moment. Please try again later.",
        },
    })
}

fn visitor_token() -> Value {
    json!({
        "token": "svt_…",
        "expiresAt": "2026-03-14T09:41:53.589793Z",
        "agentId": AGENT,
        "visitorId": "vis_77777777777777777777777777",
        "visitorSecret": "svs_…",
        "configuration": widget(),
        "theme": agent()["theme"],
        "notice": { "disclosure": true, "text": "", "privacyLink": "https://shop.example/privacy" },
    })
}

fn conversation() -> Value {
    json!({
        "id": CONVERSATION,
        "sessionId": "session-2",
        "agentId": AGENT,
        "agentName": "Shop guide",
        "messages": [
            {
                "id": QUESTION, "role": "user", "content": "Do you ship to Norway?",
                "timestamp": "2026-03-14T09:26:53.589793Z",
            },
            {
                "id": REPLY, "role": "assistant", "content": "Yes, we ship to Norway.",
                "timestamp": "2026-03-14T09:26:54.901276Z", "tokens": 8, "responseTime": 1311, "status": "completed",
                "agentId": AGENT, "agentName": "Shop guide", "model": "demo", "finishReason": "stop",
            },
        ],
        "messageCount": 2,
        "totalMessages": 2,
        "limit": 50,
        "offset": 0,
        "hasMore": false,
        "createdAt": "2026-03-14T09:26:53.589793Z",
        "updatedAt": "2026-03-14T09:26:54.901276Z",
        "metadata": {
            "visitorId": "visitor-7", "visitorEmail": "ada@example.org", "visitorName": "Ada", "source": "api",
            "ipAddress": "203.0.113.0", "page": "/pricing",
        },
    })
}

fn reply() -> Value {
    json!({
        "messageId": REPLY,
        "conversationId": CONVERSATION,
        "role": "assistant",
        "agentId": AGENT,
        "agentName": "Shop guide",
        "content": "Yes, we ship to Norway.",
        "status": "completed",
        "finishReason": "stop",
        "usage": { "promptTokens": 42, "completionTokens": 8 },
        "responseTime": 1311,
        "createdAt": "2026-03-14T09:26:54.901276Z",
        "model": "demo",
        "generation": 1,
    })
}

fn events() -> String {
    let start = json!({
        "messageId": REPLY, "conversationId": CONVERSATION, "agentId": AGENT, "agentName": "Shop guide", "model": "demo",
        "generation": 1,
    });
    let done = json!({
        "status": "completed", "finishReason": "stop", "usage": { "promptTokens": 42, "completionTokens": 8 },
        "length": 23, "responseTime": 1311,
    });
    let (first, second) = (
        json!({ "text": "Yes, we ship", "offset": 0 }),
        json!({ "text": " to Norway.", "offset": 12 }),
    );
    let events = [
        ("start", "1.0", start),
        ("delta", "1.12", first),
        ("delta", "1.23", second),
        ("done", "1.23", done),
    ];
    let written =
        events.map(|(name, id, data)| format!("event: {name}\nid: {id}\ndata: {data}\n\n"));
    format!(": waiting\n\n{}", written.concat())
}
