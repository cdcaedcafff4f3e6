// Types and sizes of files: what an agent accepts, and how visitors read it.

import { fields } from "../settings.ts";

/** Files that an agent accepts. */
export interface Limits {
  maxBytes: number;
  types: string[];
}

/** Files of one message. */
export const FILES_MAX = 5;

const OFFICE = "application/vnd.openxmlformats-officedocument.";
/** Endings of file names by type. Browsers do not know the types of all files. */
const ENDINGS: Record<string, string[]> = {
  "image/png": ["png"],
  "image/jpeg": ["jpg", "jpeg", "jpe", "jfif"],
  "image/webp": ["webp"],
  "image/gif": ["gif"],
  "text/plain": ["txt", "text", "log"],
  "text/markdown": ["md", "markdown"],
  "text/csv": ["csv", "tsv"],
  "application/json": ["json"],
  "application/pdf": ["pdf"],
  [`${OFFICE}wordprocessingml.document`]: ["docx"],
  [`${OFFICE}spreadsheetml.sheet`]: ["xlsx"],
};

/** Returns the limits that the service sent; null if the agent accepts no files. */
export function parseLimits(value: unknown): Limits | null {
  const { maxBytes, types } = fields(value);
  const known = Array.isArray(types) ? types.filter((type) => typeof type === "string") : [];
  return typeof maxBytes === "number" && known.length > 0 ? { maxBytes, types: known } : null;
}

export function typeOf({ name, type }: File): string {
  if (ENDINGS[type]) return type;
  const ending = name.split(".").pop()?.toLowerCase() ?? "";
  return Object.keys(ENDINGS).find((known) => ENDINGS[known]?.includes(ending)) ?? type;
}

/** Returns the types and endings for a file input. */
export function acceptedBy(types: string[]): string {
  return types.flatMap((type) => [type, ...(ENDINGS[type] ?? []).map((ending) => `.${ending}`)]).join();
}

/** Returns a short name of a type, such as `PDF`. */
export function typeLabel(type: string): string {
  return (ENDINGS[type]?.[0] ?? type.split("/").pop() ?? "").toUpperCase();
}

export function isImage(type: string): boolean {
  return /^image\/(png|jpeg|webp|gif)$/.test(type);
}

export function formatBytes(bytes: number, code: string): string {
  const [unit, size] = bytes < 1e3 ? ["byte", 1] : bytes < 999_500 ? ["kilobyte", 1e3] : ["megabyte", 1e6];
  const maximumFractionDigits = unit === "megabyte" ? 1 : 0;
  const style = { style: "unit", unit, unitDisplay: unit === "byte" ? "long" : "short", maximumFractionDigits } as const;
  return new Intl.NumberFormat(code, style as Intl.NumberFormatOptions).format(bytes / Number(size));
}
