package settings

import (
	"os"
	"regexp"
	"slices"

	"github.com/spf13/pflag"
)

// Kubernetes gives each container variables of the services in its namespace, unless
// the pod says enableServiceLinks: false. A service called carillon-mail makes
// CARILLON_MAIL_PORT=tcp://10.0.0.7:25, which is the name of a setting.
// (https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables)
var (
	linkName  = regexp.MustCompile(`_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)
	linkValue = regexp.MustCompile(`^(tcp|udp|sctp)://`)
)

// LinkName reports whether Kubernetes may have made a variable of this name.
func LinkName(variable string) bool { return linkName.MatchString(variable) }

// isLink reports whether a variable of a setting's name is one of a service.
func isLink(variable, value string) bool { return LinkName(variable) && linkValue.MatchString(value) }

// Links are the variables that have the names of settings and are not taken, because
// Kubernetes made them of services.
func Links(flags *pflag.FlagSet) (names []string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if name := Variable(f.Name); isLink(name, os.Getenv(name)) {
			names = append(names, name)
		}
	})
	slices.Sort(names)
	return names
}
