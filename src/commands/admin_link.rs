//! `switchboard admin link`: prints a sign-in link for operators, for installations in which no
//! account exists or can sign in.
//!
//! It opens the stores directly, with or without a running service. Access to the installation
//! secret authorizes it.

use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use switchboard_backends::catalog::{CatalogEntry, EntryKind};
use switchboard_ingress::accounts::link::LinkMaker;
use switchboard_schemas::{
    email::EmailAddress,
    organization::Organization,
    user::{User, UserState},
};

use crate::{
    config::ServiceConfig,
    installation::{self, AccountStores},
    terminal,
};

/// Subcommands of `admin`.
#[derive(Subcommand)]
pub(crate) enum AdminCommand {
    /// Print a link that signs in to the dashboard once.
    #[command(
        after_help = "Examples:\n  switchboard admin link\n  switchboard admin link --organization acme --email you@example.com"
    )]
    Link(LinkArguments),
}

/// Arguments of `admin link`: the organization and the account.
#[derive(Args)]
pub(crate) struct LinkArguments {
    /// Slug or id of the organization. Optional if there is only one.
    #[arg(long)]
    organization: Option<String>,
    /// Email address of the account. An unknown address becomes an owner. Optional if the
    /// organization has exactly one owner.
    #[arg(long)]
    email: Option<String>,
}

/// Prints the link and nothing else, so that scripts can read it.
pub(crate) async fn run(config: &ServiceConfig, arguments: &LinkArguments) -> anyhow::Result<()> {
    let AccountStores {
        catalog,
        accounts,
        secret,
    } = installation::open_account_stores(config).await?;
    let entries = catalog.list(EntryKind::Organization, None).await?;
    let organizations = entries.into_iter().filter_map(|entry| match entry {
        CatalogEntry::Organization(organization) => Some(organization),
        _ => None,
    });
    let organization =
        choose_organization(organizations.collect(), arguments.organization.as_deref())?;
    let maker = LinkMaker {
        catalog,
        accounts,
        secret,
        dashboard_url: config.dashboard_url(),
        lifetime: Duration::from_millis(config.ingress.sign_in_link_lifetime_ms),
    };
    let email = match &arguments.email {
        Some(text) => text.parse().with_context(|| format!("--email {text}"))?,
        None => only_owner(maker.owners(&organization.id).await?)?,
    };
    let link = maker.sign_in_link(&organization.id, &email).await?;
    terminal::print_output(&format!("{link}\n"))
}

/// Returns the organization with this slug or id, or the only one.
fn choose_organization(
    mut organizations: Vec<Organization>,
    wanted: Option<&str>,
) -> anyhow::Result<Organization> {
    let slugs: Vec<_> = organizations.iter().map(|org| org.slug.clone()).collect();
    let found = match wanted {
        Some(name) => organizations
            .iter()
            .position(|org| org.slug == name || org.id.as_str() == name),
        None => (organizations.len() == 1).then_some(0),
    };
    match (found, wanted) {
        (Some(index), _) => Ok(organizations.swap_remove(index)),
        _ if slugs.is_empty() => {
            bail!("there is no organization yet: create one with switchboard apply -f FILE")
        }
        (None, Some(name)) => bail!(
            "organization {name} does not exist; there are: {}",
            slugs.join(", ")
        ),
        (None, None) => bail!(
            "there are several organizations: choose one with --organization: {}",
            slugs.join(", ")
        ),
    }
}

fn only_owner(owners: Vec<User>) -> anyhow::Result<EmailAddress> {
    let mut owners = owners
        .into_iter()
        .filter(|owner| owner.state != UserState::Disabled);
    match (owners.next(), owners.next()) {
        (Some(owner), None) => Ok(owner.email),
        (None, _) => bail!("the organization has no owner yet: choose the account with --email"),
        (Some(_), Some(_)) => {
            bail!("the organization has several owners: choose the account with --email")
        }
    }
}

#[cfg(test)]
mod tests {
    use switchboard_schemas::{ids::OrgId, secret::InstallationSecret};

    use super::*;

    fn organizations(slugs: &[&str]) -> Vec<Organization> {
        let secret = InstallationSecret::parse(&"s".repeat(64)).unwrap();
        let organization = |slug: &&str| Organization {
            id: OrgId::derive(&secret, slug),
            slug: (*slug).to_owned(),
            name: String::new(),
        };
        slugs.iter().map(organization).collect()
    }

    #[test]
    fn only_organization_is_the_default_and_others_are_listed() {
        let chosen = |slugs: &[&str], wanted: Option<&str>| {
            let chosen = choose_organization(organizations(slugs), wanted);
            chosen
                .map(|org| org.slug)
                .map_err(|error| error.to_string())
        };
        assert_eq!(chosen(&["demo"], None), Ok("demo".to_owned()));
        let id = organizations(&["acme"])[0].id.to_string();
        assert_eq!(chosen(&["demo", "acme"], Some(&id)), Ok("acme".to_owned()));
        for (slugs, wanted) in [
            (&["demo", "acme"][..], None),
            (&["demo", "acme"], Some("x")),
        ] {
            let error = chosen(slugs, wanted).unwrap_err();
            assert!(error.ends_with(": demo, acme"), "{error}");
        }
        assert!(chosen(&[], None).unwrap_err().contains("switchboard apply"));
    }
}
