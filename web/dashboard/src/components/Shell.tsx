// Frame of all pages behind the sign-in: navigation, account menu, redirect to the sign-in page.
import '../component-styles';
import {
  AppShell,
  Avatar,
  Box,
  Burger,
  Button,
  Center,
  Group,
  Loader,
  type MantineColorScheme,
  Menu,
  ScrollArea,
  Stack,
  Text,
  UnstyledButton,
  useMantineColorScheme,
} from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { Notifications } from '@mantine/notifications';
import {
  type Icon,
  IconAddressBook,
  IconChartBar,
  IconChevronDown,
  IconHistory,
  IconKey,
  IconLock,
  IconLogout,
  IconMessages,
  IconPlugConnected,
  IconRobot,
  IconSitemap,
  IconUsers,
} from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { Link, Outlet, useLocation, useNavigate } from '@tanstack/react-router';
import { lazy, Suspense, useContext, useEffect, useRef } from 'react';
import { sessionQuery, useEndSession, useSession } from '../api/session';
import logo from '../favicon.svg';
import { ROLES } from '../pages/settings/roles';
import { RIGHTS, type Right } from '../rights';
import { HeldSession, useHeldSession } from '../use-held-session';
import { Confirm } from './Confirm';
import { ErrorAlert, NotForThisRole, notifyError } from './ErrorAlert';
import { NoModelBanner } from './NoModelBanner';
import { PasswordReminder } from './PasswordReminder';

const ChangePassword = lazy(() => import('./ChangePassword').then((module) => ({ default: module.ChangePassword })));
const SignInAgain = lazy(() => import('./SignInAgain').then((module) => ({ default: module.SignInAgain })));

interface Place {
  to: string;
  label: string;
  icon: Icon;
  right: Right;
}

const WORK: Place[] = [
  { to: '/agents', label: 'Agents', icon: IconRobot, right: RIGHTS.readConfiguration },
  { to: '/teams', label: 'Teams', icon: IconSitemap, right: RIGHTS.readConfiguration },
  { to: '/conversations', label: 'Conversations', icon: IconMessages, right: RIGHTS.readConversations },
  { to: '/leads', label: 'Leads', icon: IconAddressBook, right: RIGHTS.readLeads },
  { to: '/analytics', label: 'Analytics', icon: IconChartBar, right: RIGHTS.readConversations },
];

const SETTINGS: Place[] = [
  { to: '/settings/keys', label: 'API keys', icon: IconKey, right: RIGHTS.readConfiguration },
  { to: '/settings/providers', label: 'Providers', icon: IconPlugConnected, right: RIGHTS.readConfiguration },
  { to: '/settings/members', label: 'Members', icon: IconUsers, right: RIGHTS.manageUsers },
  { to: '/settings/audit', label: 'Audit log', icon: IconHistory, right: RIGHTS.readAudit },
];

const SCHEMES = [
  { scheme: 'light', label: 'Light' },
  { scheme: 'dark', label: 'Dark' },
  { scheme: 'auto', label: 'System' },
] as const;

/** Shows pages to signed-in users and redirects others to the sign-in page, unless they would lose unsaved changes. */
export function Shell() {
  const session = useQuery(sessionQuery);
  const { pathname, searchStr } = useLocation();
  const from = useRef(pathname + searchStr);
  // During the redirect the current address is already the sign-in page, which is no return address.
  if (session.data) from.current = pathname + searchStr;
  const { held, letGo } = useHeldSession(session.data);
  const isStranger = session.data === null && held === undefined;
  const navigate = useNavigate();
  // Redirects once, not on each render: loading the sign-in page may take a while.
  useEffect(() => {
    if (isStranger) void navigate({ to: '/sign-in', search: { to: from.current }, replace: true });
  }, [isStranger, navigate]);
  if (session.isPending) {
    return (
      <Center mih="100vh">
        <Loader aria-label="Loading" />
      </Center>
    );
  }
  // Keeps signed-in users on the page while the service is unreachable.
  if (session.data === undefined) {
    return (
      <Box p="xl" maw={640} mx="auto" component="main">
        <ErrorAlert error={session.error} retry={() => void session.refetch()} />
      </Box>
    );
  }
  if (held === undefined) return null;
  return (
    <HeldSession value={held}>
      {/* Another user starts with fresh state. */}
      <Frame key={held.session.user.id} />
      {session.data === null && (
        <Suspense>
          <SignInAgain onLeave={letGo} />
        </Suspense>
      )}
    </HeldSession>
  );
}

function Frame() {
  const [opened, { toggle, close }] = useDisclosure(false);
  const { pathname } = useLocation();
  const { rights } = useSession();
  const place = [...WORK, ...SETTINGS].find(({ to }) => pathname.startsWith(to));
  const isAllowed = place === undefined || rights.includes(place.right);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the navigation of a narrow screen closes with each way
  useEffect(close, [pathname, close]);
  return (
    <AppShell
      header={{ height: { base: 56, sm: 0 } }}
      navbar={{ width: 236, breakpoint: 'sm', collapsed: { mobile: !opened } }}
      padding={{ base: 'md', sm: 'xl' }}
    >
      <a className="skip-link" href="#main">
        Skip to content
      </a>
      <AppShell.Header hiddenFrom="sm" className="panel">
        <Group h="100%" px="md" gap="sm">
          <Burger
            opened={opened}
            onClick={toggle}
            size="sm"
            aria-label={opened ? 'Close navigation' : 'Open navigation'}
          />
          <Brand />
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="sm" className="nav">
        <Box visibleFrom="sm" px="xs" py="sm">
          <Brand />
        </Box>
        <AppShell.Section grow component={ScrollArea} mt="xs">
          <Places places={WORK} label="Work" />
          <Text size="xs" fw={600} c="dimmed" px="xs" mt="lg" mb={4} id="settings-label">
            Settings
          </Text>
          <Places places={SETTINGS} label="Settings" />
        </AppShell.Section>
        <AccountMenu />
      </AppShell.Navbar>
      <Notifications position="bottom-left" autoClose={5000} className="toasts" />
      <AppShell.Main id="main" tabIndex={-1}>
        <PasswordReminder />
        <NoModelBanner />
        {isAllowed ? <Outlet /> : <NotForThisRole />}
      </AppShell.Main>
    </AppShell>
  );
}

function Brand() {
  return (
    <Group gap="xs" wrap="nowrap">
      <img src={logo} width={26} height={26} alt="" />
      <Text fw={700} size="md">
        Switchboard
      </Text>
    </Group>
  );
}

function Places({ places, label }: { places: Place[]; label: string }) {
  const { rights } = useSession();
  const open = places.filter((place) => rights.includes(place.right));
  return (
    <Stack gap={2} component="nav" aria-label={label}>
      {open.map(({ to, label, icon: Icon }) => (
        <Link key={to} to={to} className="nav-link">
          <Icon size={18} stroke={1.7} aria-hidden />
          {label}
        </Link>
      ))}
    </Stack>
  );
}

function AccountMenu() {
  const { user, organization } = useSession();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const end = useEndSession();
  const held = useContext(HeldSession);
  const [isChangingPassword, changingPassword] = useDisclosure(false);
  const [isConfirming, confirming] = useDisclosure(false);
  const lacksPassword = user.hasPassword === false;
  const isAtStake = held?.isAtStake === true;
  const signOut = () => (isAtStake || lacksPassword ? confirming.open() : void end().catch(notifyError));
  return (
    <>
      <Menu position="top-start" width={236} shadow="md">
        <Menu.Target>
          <UnstyledButton className="nav-link" mih={52}>
            <Avatar name={user.name} size={32} radius="xl" color="indigo" aria-hidden />
            <Box flex={1} miw={0}>
              <Text size="sm" fw={600} c="var(--mantine-color-text)" truncate>
                {user.name}
              </Text>
              <Text size="xs" truncate>
                {organization.name}
              </Text>
            </Box>
            <IconChevronDown size={14} aria-hidden />
          </UnstyledButton>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Label>
            <Text size="xs" fw={600} className="break">
              {user.email}
            </Text>
            <Text size="xs" className="break">
              {ROLES[user.role].label} of {organization.slug}
            </Text>
          </Menu.Label>
          <Menu.Divider />
          <Menu.Label>Theme</Menu.Label>
          <Menu.RadioGroup value={colorScheme} onChange={(scheme) => setColorScheme(scheme as MantineColorScheme)}>
            {SCHEMES.map(({ scheme, label }) => (
              <Menu.RadioItem key={scheme} value={scheme}>
                {label}
              </Menu.RadioItem>
            ))}
          </Menu.RadioGroup>
          <Menu.Divider />
          <Menu.Item leftSection={<IconLock size={16} aria-hidden />} onClick={changingPassword.open}>
            {lacksPassword ? 'Set a password' : 'Change password'}
          </Menu.Item>
          <Menu.Item leftSection={<IconLogout size={16} aria-hidden />} onClick={signOut}>
            Sign out
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {isChangingPassword && (
        <Suspense>
          <ChangePassword onClose={changingPassword.close} />
        </Suspense>
      )}
      {isConfirming && (
        <Confirm
          title={lacksPassword ? 'Sign out without a password?' : 'Sign out without saving?'}
          action={isAtStake ? 'Discard and sign out' : 'Sign out'}
          onConfirm={async () => (isAtStake ? held?.leave(end) : end())}
          onClose={confirming.close}
        >
          {lacksPassword && (
            <>
              Your link worked once. To sign in again without a new one, choose a password first.
              <Button
                variant="light"
                fullWidth
                my="sm"
                onClick={() => {
                  confirming.close();
                  changingPassword.open();
                }}
              >
                Choose a password
              </Button>
            </>
          )}
          {isAtStake && 'Your changes are not saved.'}
        </Confirm>
      )}
    </>
  );
}
