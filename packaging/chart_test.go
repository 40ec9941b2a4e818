//go:build proof && linux

package packaging

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// chart renders the chart by helm, which the Makefile pins and builds.
type chart struct{ helm string }

func newChart(t *testing.T) chart {
	t.Helper()
	out := strings.Fields(run(t, "..", []string{"MAKEFLAGS="}, "make", "-s", "--no-print-directory", "helm"))
	return chart{out[len(out)-1]}
}

func (c chart) args(args ...string) []string {
	return append([]string{"template", "jobs", "chart", "--namespace", "prod", "--kube-version", "1.31.0"}, args...)
}

// refused returns why values are refused.
func (c chart) refused(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), c.helm, c.args(args...)...).CombinedOutput()
	require.True(t, errors.As(err, new(*exec.ExitError)), "%v\n%s", err, out)
	return string(out)
}

// object is a Kubernetes object; the tests look at what they know by name.
type object struct {
	Kind     string
	Metadata struct {
		Name   string
		Labels map[string]string
	}
	Data map[string]string
	Spec struct {
		Replicas    int
		ServiceName string `yaml:"serviceName"`
		Selector    any
		Template    struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct {
				SecurityContext map[string]any `yaml:"securityContext"`
				Containers      []podContainer
				Volumes         []struct{ Name string }
			}
		}
	}
}

type podContainer struct {
	Args []string
	Env  []struct {
		Name, Value string
		ValueFrom   map[string]map[string]string `yaml:"valueFrom"`
	}
	Ports          []struct{ Name string }
	LivenessProbe  probe `yaml:"livenessProbe"`
	ReadinessProbe probe `yaml:"readinessProbe"`
	StartupProbe   probe `yaml:"startupProbe"`
	VolumeMounts   []struct {
		Name      string
		MountPath string `yaml:"mountPath"`
		SubPath   string `yaml:"subPath"`
	} `yaml:"volumeMounts"`
	SecurityContext map[string]any `yaml:"securityContext"`
}

type probe struct {
	HTTPGet struct{ Path, Port, Scheme string } `yaml:"httpGet"`
}

func (c chart) render(t *testing.T, args ...string) map[string]object {
	t.Helper()
	objects := map[string]object{}
	text := run(t, ".", nil, c.helm, c.args(args...)...)
	for decoder := yaml.NewDecoder(strings.NewReader(text)); ; {
		var o object
		err := decoder.Decode(&o)
		if errors.Is(err, io.EOF) {
			return objects
		}
		require.NoError(t, err, "%s", text)
		require.NotContains(t, objects, o.Kind+"/"+o.Metadata.Name)
		objects[o.Kind+"/"+o.Metadata.Name] = o
	}
}

// TestTheChart: helm accepts it with everything on, refuses what would not be
// safe, and a pod's command starts a node of the settings that were rendered, which
// its probes find ready.
func TestTheChart(t *testing.T) {
	t.Parallel()
	c := newChart(t)
	run(t, ".", nil, c.helm, "lint", "--strict", "--kube-version", "1.31.0", "chart", "-f", "chart/ci/full.yaml")

	require.Contains(t, c.refused(t, "--set", "secret.name=s"), "insecureBind: true")
	require.Contains(t, c.refused(t, "--set", "insecureBind=true"), "secret.name names the Secret")
	require.Contains(t, c.refused(t, "--set", "secret.name=s,insecureBind=true,replica=2"), "'replica' not allowed")
	require.Contains(t, c.refused(t, "--set", "secret.name=s,insecureBind=true,settings.database=mysql://a"), "/settings/database")

	full := c.render(t, "-f", "chart/ci/full.yaml")
	for _, kind := range []string{"PodDisruptionBudget", "ServiceMonitor", "NetworkPolicy", "Ingress", "StatefulSet", "ConfigMap", "Service"} {
		require.Contains(t, full, kind+"/jobs-carillon")
	}
	tls := full["StatefulSet/jobs-carillon"].Spec.Template.Spec
	require.Equal(t, "HTTPS", tls.Containers[0].ReadinessProbe.HTTPGet.Scheme)
	settings := full["ConfigMap/jobs-carillon"].Data["server.yaml"]
	require.Contains(t, settings, "executors-tls-cert: /etc/carillon/tls-executors/tls.crt")
	require.Contains(t, settings, "base-url: https://jobs.example.com/carillon")

	plain := c.render(t, "--set", "secret.name=s,insecureBind=true,settings.drain-delay=0s")
	set := plain["StatefulSet/jobs-carillon"]
	require.Contains(t, plain, "Service/"+set.Spec.ServiceName)
	spec := set.Spec.Template.Spec
	require.Equal(t, true, spec.SecurityContext["runAsNonRoot"])
	require.Equal(t, imageUser, spec.SecurityContext["runAsUser"])
	pod := spec.Containers[0]
	require.Equal(t, true, pod.SecurityContext["readOnlyRootFilesystem"])

	// What Kubernetes would do with it.
	i := readImage(t, "admin")
	env := append(i.env, "CARILLON_HTTP="+freePort(t, i.env, "CARILLON_HTTP"), "CARILLON_EXECUTORS="+freePort(t, i.env, "CARILLON_EXECUTORS"),
		"CARILLON_METRICS_LISTEN="+freePort(t, []string{"M=0.0.0.0:9100"}, "M"))
	fields := map[string]string{"metadata.name": "jobs-carillon-0"}
	secrets := map[string]string{"s/database": "sqlite:/data/carillon.db", "s/sealing-key": strings.Repeat("5a", 32)}
	for _, v := range pod.Env {
		value := v.Value
		if field, is := v.ValueFrom["fieldRef"]; is {
			value = fields[field["fieldPath"]]
		}
		if key, is := v.ValueFrom["secretKeyRef"]; is {
			value = secrets[key["name"]+"/"+key["key"]]
		}
		require.NotEmpty(t, value, v.Name)
		env = append(env, v.Name+"="+strings.ReplaceAll(value, "$(POD_NAME)", fields["metadata.name"]))
	}
	var files [][2]string
	for _, m := range pod.VolumeMounts {
		if m.Name == "settings" {
			files = append(files, [2]string{m.MountPath, plain["ConfigMap/jobs-carillon"].Data[m.SubPath]})
		}
	}
	require.Len(t, files, 1)
	box := newContainer(t, files...)
	box.env = env
	get := func(p probe) bool {
		require.Equal(t, "HTTP", p.HTTPGet.Scheme)
		_, port, err := net.SplitHostPort(valueOf(env, "CARILLON_"+strings.ToUpper(p.HTTPGet.Port)))
		require.NoError(t, err)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:"+port+p.HTTPGet.Path, nil)
		require.NoError(t, err)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false
		}
		defer response.Body.Close()
		var body bytes.Buffer
		_, _ = body.ReadFrom(response.Body) // the status says it
		return response.StatusCode == http.StatusOK
	}
	stop := box.serve(t, append(i.entrypoint, pod.Args...), func() bool { return get(pod.ReadinessProbe) })
	require.True(t, get(pod.LivenessProbe))
	require.True(t, get(pod.StartupProbe))
	stop()
}

// valueOf is the last value of a variable, as the process sees it.
func valueOf(env []string, name string) (value string) {
	for _, v := range env {
		if rest, is := strings.CutPrefix(v, name+"="); is {
			value = rest
		}
	}
	return value
}

// run runs a program to its end and returns what it says.
func run(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s %s\n%s%s", name, strings.Join(args, " "), out, stderr.String())
	return string(out)
}
