// Props of each section of the agent form.
import type { AgentFields } from '../../api/types';
import type { Draft } from '../../use-draft';

export interface SectionProps {
  form: Pick<Draft<AgentFields>, 'base' | 'fields' | 'set'>;
  /** The user may not edit. */
  isReadOnly: boolean;
  /** Returns the error of a field. */
  fieldError: (path: string) => string | undefined;
}
