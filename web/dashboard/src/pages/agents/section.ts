// What each part of an agent's form is given.
import type { AgentFields } from '../../api/types';
import type { Draft } from '../../use-draft';

export interface SectionProps {
  form: Pick<Draft<AgentFields>, 'fields' | 'set'>;
  /** Nobody types into it: the person may only look. */
  isReadOnly: boolean;
  /** What the service said of a field when it refused it. */
  mistake: (path: string) => string | undefined;
}
