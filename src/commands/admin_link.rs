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
    ids::OrgId,
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
    Link(LinkArguments),
}

/// Arguments of `admin link`: the organization and the account.
#[derive(Args)]
pub(crate) struct LinkArguments {
    /// Slug or id of the organization.
    #[arg(long)]
    organization: String,
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
    let org = match arguments.organization.parse::<OrgId>() {
        Ok(id) => id,
        Err(_) => OrgId::derive(&secret, &arguments.organization),
    };
    let Some(CatalogEntry::Organization(organization)) =
        catalog.get(EntryKind::Organization, org.as_str()).await?
    else {
        bail!("organization {} does not exist", arguments.organization);
    };
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
