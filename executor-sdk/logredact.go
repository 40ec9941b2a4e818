package executor

// redacted stands in a run's log for the value of an attribute that its name
// gives away as a secret.
const redacted = "[redacted]"

// secretNames are compared with the names of attributes without case, "_", "-"
// and ".". Whole names only: "tokens_used" is no secret.
var secretNames = map[string]bool{
	"password": true, "passwd": true, "pwd": true, "passphrase": true, "secret": true, "clientsecret": true, "secretkey": true,
	"token": true, "accesstoken": true, "refreshtoken": true, "idtoken": true, "authtoken": true, "bearertoken": true, "jwt": true,
	"authorization": true, "proxyauthorization": true, "apikey": true, "xapikey": true, "privatekey": true,
	"cookie": true, "setcookie": true, "credential": true, "credentials": true, "dsn": true,
}

func isSecret(name string) bool {
	var short [20]byte
	n := 0
	for i := range len(name) {
		c := name[i]
		switch {
		case c == '_' || c == '-' || c == '.':
			continue
		case c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
		}
		if n == len(short) {
			return false // longer than all of them
		}
		short[n] = c
		n++
	}
	return secretNames[string(short[:n])]
}
