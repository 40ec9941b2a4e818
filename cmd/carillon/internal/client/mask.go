package client

import (
	"bytes"
	"encoding/json"
	"strings"
)

// masked replaces each secret in the shown body.
const masked = "***"

// secretNames are the ends of names whose texts are secrets, in lower case.
var secretNames = []string{
	"password", "passwd", "passphrase", "secret", "token", "apikey", "api_key", "api-key", "clientkey", "privatekey", "private_key",
	"authorization", "cookie", "credential", "credentials",
}

// maskBody is a request's body without its secrets, as JSON. A body in another format is
// masked as a whole.
func maskBody(body []byte) string {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil || decoder.More() {
		return masked
	}
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(mask(value, false)) != nil {
		return masked
	}
	return strings.TrimSpace(out.String())
}

// mask replaces the texts and numbers of a value if it is a secret. If not, it looks for
// secrets inside. It looks into texts that are JSON objects or lists, too.
func mask(value any, secret bool) any {
	switch v := value.(type) {
	case map[string]any:
		for name, field := range v {
			v[name] = mask(field, secret || isSecret(name))
		}
	case []any:
		for i := range v {
			v[i] = mask(v[i], secret)
		}
	case string:
		if secret && v != "" {
			return masked
		}
		if text := strings.TrimSpace(v); strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") {
			if inner := maskBody([]byte(text)); inner != masked {
				return inner
			}
		}
	case json.Number:
		if secret {
			return masked
		}
	}
	return value
}

// isSecret reports whether a field's value is a secret by the field's name.
func isSecret(name string) bool {
	name = strings.ToLower(name)
	if name == "secrets" {
		return true
	}
	for _, end := range secretNames {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}
