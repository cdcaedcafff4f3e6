// Reload of the page on request, which keeps drafts and therefore needs no prompt.
let reloads = false;

export function reloadPage(): void {
  reloads = true;
  location.reload();
}

export function isReloading(): boolean {
  return reloads;
}
