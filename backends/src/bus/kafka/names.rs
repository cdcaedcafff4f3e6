//! What our topics and groups are called in a cluster that several installations share.

use switchboard_schemas::topics::Topic;

/// The prefix of an installation.
#[derive(Clone, Debug)]
pub(super) struct Names {
    prefix: String,
}

impl Names {
    /// Names below a namespace; an empty one adds nothing.
    pub(super) fn new(namespace: &str) -> Self {
        let prefix = if namespace.is_empty() {
            String::new()
        } else {
            format!("{namespace}.")
        };
        Self { prefix }
    }

    /// Name of a topic in the cluster.
    pub(super) fn topic(&self, topic: Topic) -> String {
        format!("{}{topic}", self.prefix)
    }

    /// Name of a group in the cluster; groups of two installations must not mix even where their names are equal.
    pub(super) fn group(&self, group: &str) -> String {
        format!("{}{group}", self.prefix)
    }

    /// The topic of a name in the cluster.
    pub(super) fn parse(&self, name: &str) -> Option<Topic> {
        Topic::from_name(name.strip_prefix(&self.prefix)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_topic_survives_its_name() {
        for names in [Names::new(""), Names::new("shop")] {
            assert!(
                Topic::ALL
                    .into_iter()
                    .all(|topic| names.parse(&names.topic(topic)) == Some(topic))
            );
        }
        assert_eq!(Names::new("shop").topic(Topic::Jobs), "shop.chat.jobs");
        assert_eq!(Names::new("shop").parse("other.chat.jobs"), None);
    }
}
