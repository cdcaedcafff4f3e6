//! Names of topics and groups in a cluster that several installations share.

use switchboard_schemas::topics::Topic;

/// The names of an installation.
#[derive(Clone, Debug)]
pub(super) struct ClusterNames {
    prefix: String,
}

impl ClusterNames {
    /// Creates names with a prefix; an empty namespace adds nothing.
    pub(super) fn new(namespace: &str) -> Self {
        let prefix = if namespace.is_empty() {
            String::new()
        } else {
            format!("{namespace}.")
        };
        Self { prefix }
    }

    /// Returns the name of a topic in the cluster.
    pub(super) fn topic(&self, topic: Topic) -> String {
        format!("{}{topic}", self.prefix)
    }

    /// Returns the name of a group in the cluster. Groups of two installations must not mix even if
    /// their names are equal.
    pub(super) fn group(&self, group: &str) -> String {
        format!("{}{group}", self.prefix)
    }

    /// Returns the topic with this name in the cluster.
    pub(super) fn parse(&self, name: &str) -> Option<Topic> {
        Topic::from_name(name.strip_prefix(&self.prefix)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topic_name_round_trips() {
        for names in [ClusterNames::new(""), ClusterNames::new("shop")] {
            assert!(
                Topic::ALL
                    .into_iter()
                    .all(|topic| names.parse(&names.topic(topic)) == Some(topic))
            );
        }
        assert_eq!(
            ClusterNames::new("shop").topic(Topic::Jobs),
            "shop.chat.jobs"
        );
        assert_eq!(ClusterNames::new("shop").parse("other.chat.jobs"), None);
    }
}
