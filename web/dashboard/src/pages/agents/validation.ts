// Validation of the agent form before saving.
import type { AgentFields } from '../../api/types';
import { validateFeedAddress } from './feed-address';
import { validateLeadForm } from './lead-form';
import { COLORS } from './themes';
import { validateWebAddress } from './web-address';

/** Returns the reason why the form cannot be saved. */
export function validateAgent(agent: AgentFields): string | undefined {
  if (agent.name.trim() === '') return 'The agent needs a name';
  const color = COLORS.find(([field]) => !CSS.supports('color', agent.theme[field]));
  if (color !== undefined) return `Appearance: ${color[1].toLowerCase()} is not a color`;
  if (!CSS.supports('border-radius', agent.theme.borderRadius))
    return 'Appearance: the corner radius is not a CSS length';
  if (agent.theme.fontFamily.trim() === '') return 'Appearance: enter at least one font';
  if (validateWebAddress(agent.disclosure?.privacyLink ?? '') !== undefined)
    return 'Appearance: the privacy link is invalid';
  if (agent.files?.types.length === 0) return 'Behavior: choose at least one type of files';
  const leadFormError = agent.leadForm && validateLeadForm(agent.leadForm);
  if (leadFormError) return `Behavior: ${leadFormError}`;
  const product = agent.ecommerce.products.findIndex(
    (product) =>
      product.title.trim() === '' ||
      validateWebAddress(product.image) !== undefined ||
      validateWebAddress(product.url) !== undefined,
  );
  const { feed } = agent.ecommerce;
  if (feed !== null && validateFeedAddress(feed.url) !== undefined)
    return 'Products: the address of the feed is invalid';
  return product < 0 ? undefined : `Products: product ${product + 1} is incomplete`;
}
