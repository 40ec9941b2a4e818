package secret

// Fingerprint names the key without giving it away: 32 hex digits.
func (b *Box) Fingerprint() string { return b.fingerprint }
