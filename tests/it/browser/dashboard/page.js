// Lets a test use the dashboard by what a person sees and hears, never by classes or ids.
const PATIENCE_MS = 20000;
const visible = element => element.getClientRects().length > 0;
// A label may hold what describes the control, too; that is no part of its name here.
const labelText = (element, label) => {
    const copy = label.cloneNode(true);
    for (const id of (element.getAttribute('aria-describedby') || '').split(' ').filter(Boolean)) copy.querySelector('#' + CSS.escape(id))?.remove();
    return copy.textContent;
};
const nameOf = element => (element.getAttribute('aria-label')
    || (element.getAttribute('aria-labelledby') || '').split(' ').map(id => document.getElementById(id)?.textContent || '').join(' ').trim()
    || [...(element.labels || [])].map(label => labelText(element, label)).join(' ')
    || element.textContent).trim();
const until = async (what, find) => {
    for (const end = performance.now() + PATIENCE_MS; ;) {
        const found = find();
        if (found) return found;
        if (performance.now() > end) throw new Error('waited for ' + what + ' in\n' + document.body.innerText.slice(0, 3000));
        await new Promise(resolve => setTimeout(resolve, 25));
    }
};
const all = (selector, name) => [...document.querySelectorAll(selector)].filter(element => visible(element) && nameOf(element) === name);
const PRESSED = 'button, a, [role=tab], [role=menuitem], [role=option], input[type=checkbox], input[type=radio]';
const control = name => until('control ' + name, () => all(PRESSED, name).find(element => !element.disabled));
// A click of a hand takes the focus along.
const hit = element => {
    sessionStorage.hits = Number(sessionStorage.hits ?? 0) + 1;
    element.focus(); element.click();
};
const press = async name => hit(await control(name));
const field = name => until('field ' + name, () => all('input, textarea', name)[0]);
const type = async (name, text) => {
    const element = await field(name);
    const kind = element.tagName === 'TEXTAREA' ? HTMLTextAreaElement : HTMLInputElement;
    element.focus();
    Object.getOwnPropertyDescriptor(kind.prototype, 'value').set.call(element, text);
    element.dispatchEvent(new Event('input', {bubbles: true}));
    await new Promise(resolve => setTimeout(resolve));
};
const choose = async (name, option) => {
    hit(await until('list ' + name, () => all('input', name).find(element => !element.disabled)));
    hit(await until('option ' + option, () => all('[role=option]', option)[0]));
};
const shows = text => until('text ' + text, () => document.body.innerText.includes(text));
const part = id => until('part ' + id, () => document.querySelector(`[data-testid="${id}"]`));
const openAccountMenu = async () => {
    await until('the page', () => document.querySelector('h1'));
    // On a narrow screen the navigation is behind a button.
    if (all('button', 'Open navigation').length > 0) await press('Open navigation');
    hit(await until('the account menu', () => [...document.querySelectorAll('nav button[aria-haspopup=menu]')].find(visible)));
    await until('its items', () => document.querySelector('[role=menu]'));
};
