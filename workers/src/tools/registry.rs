//! Which tools an agent has: those of all sources, by name.

use std::sync::Arc;

use futures::future::join_all;
use switchboard_schemas::agent::Agent;

use super::{Tool, ToolSource};
use crate::model::prompt::ToolDeclaration;

/// Tools of one agent: more of them confuse a model and fill its prompt.
const TOOLS_MAX: usize = 64;

/// All sources of tools.
pub(crate) struct ToolRegistry {
    sources: Vec<Box<dyn ToolSource>>,
}

/// The tools of one agent.
#[derive(Clone, Default)]
pub(crate) struct Toolbox {
    tools: Vec<Arc<dyn Tool>>,
}

impl ToolRegistry {
    /// The registry of these; where two tools have one name, the earlier source's stays.
    pub(crate) fn new(sources: Vec<Box<dyn ToolSource>>) -> Self {
        Self { sources }
    }

    /// The tools of an agent.
    pub(crate) async fn of(&self, agent: &Arc<Agent>) -> Toolbox {
        let found = join_all(self.sources.iter().map(|source| source.tools(agent))).await;
        let mut toolbox = Toolbox::default();
        for tool in found.into_iter().flatten().take(TOOLS_MAX) {
            if toolbox.get(tool.name()).is_none() {
                toolbox.tools.push(tool);
            }
        }
        toolbox
    }
}

impl Toolbox {
    /// A tool by its name.
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.iter().find(|tool| tool.name() == name)
    }

    /// What a model is told of them.
    pub(crate) fn declarations(&self) -> Vec<ToolDeclaration> {
        let declaration = |tool: &Arc<dyn Tool>| ToolDeclaration {
            name: tool.name().to_owned(),
            description: tool.description().to_owned(),
            parameters: tool.parameters().clone(),
        };
        self.tools.iter().map(declaration).collect()
    }
}
