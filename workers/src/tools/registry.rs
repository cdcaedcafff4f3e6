//! Collects the tools of an agent from all sources and finds them by name.

use std::sync::Arc;

use futures::future::join_all;
use switchboard_schemas::{agent::Agent, ids::ConversationId};

use super::{AgentTool, ToolSource};
use crate::model::prompt::ToolDeclaration;

/// Most tools of one agent: more of them confuse a model and fill its prompt.
const TOOLS_MAX: usize = 64;

pub(crate) struct ToolRegistry {
    sources: Vec<Box<dyn ToolSource>>,
}

#[derive(Clone, Default)]
pub(crate) struct AgentToolbox {
    tools: Vec<Arc<dyn AgentTool>>,
}

impl ToolRegistry {
    /// Creates a registry. If two tools have the same name, the one of the earlier source wins.
    pub(crate) fn new(sources: Vec<Box<dyn ToolSource>>) -> Self {
        Self { sources }
    }

    pub(crate) async fn toolbox_for(
        &self,
        agent: &Arc<Agent>,
        conversation: &ConversationId,
    ) -> AgentToolbox {
        let sources = self.sources.iter();
        let found = join_all(sources.map(|source| source.tools_for(agent, conversation))).await;
        let mut toolbox = AgentToolbox::default();
        for tool in found.into_iter().flatten().take(TOOLS_MAX) {
            if toolbox.find_tool(tool.name()).is_none() {
                toolbox.tools.push(tool);
            }
        }
        toolbox
    }
}

impl AgentToolbox {
    pub(crate) fn find_tool(&self, name: &str) -> Option<&Arc<dyn AgentTool>> {
        self.tools.iter().find(|tool| tool.name() == name)
    }

    pub(crate) fn declarations(&self) -> Vec<ToolDeclaration> {
        let declaration = |tool: &Arc<dyn AgentTool>| ToolDeclaration {
            name: tool.name().to_owned(),
            description: tool.description().to_owned(),
            parameters: tool.parameters().clone(),
        };
        self.tools.iter().map(declaration).collect()
    }
}
