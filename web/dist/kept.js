function kept(where, key) {
  try {
    return JSON.parse(where.getItem(key) ?? "null");
  } catch {
    return null;
  }
}

export { kept };
