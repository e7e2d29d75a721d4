package loadbalancer

import (
	_ "embed" // For the built-in template.
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"text/template"

	"sigs.k8s.io/cluster-api/providers/internal/gotemplate"
)

// Path is the path of the configuration in the container.
const Path = "/usr/local/etc/haproxy/haproxy.cfg"

// DefaultPort is the default port of the endpoint, and APIServerPort that of the API servers of control plane machines.
const (
	DefaultPort   = 6443
	APIServerPort = 6443
)

// Limits of templates of users. The configuration of 100 machines has about 10 KiB.
const (
	// MaxConfig is the maximum size of a configuration, in bytes.
	MaxConfig = 256 << 10
	// maxWork is the budget of a template: a few milliseconds.
	maxWork = 1 << 20
)

//go:embed haproxy.tmpl
var builtIn string

// variables declares the documented variables, so that templates may use them as $IPv6 and as .IPv6. It has no line break, so
// that errors refer to the lines of the template.
const variables = `{{- $IPv6 := .IPv6 -}}{{- $FrontendControlPlanePort := .FrontendControlPlanePort -}}` +
	`{{- $BackendControlPlanePort := .BackendControlPlanePort -}}{{- $BackendServers := .BackendServers -}}`

// Config is what a load balancer forwards.
type Config struct {
	// Port is the port to listen on.
	Port int
	// IPv6 makes it listen on IPv6 addresses, too.
	IPv6 bool
	// Backends are the IP addresses of control plane machines by the names of their containers.
	Backends map[string]string
}

// Template renders configurations. The zero value is not valid.
type Template struct{ parsed *gotemplate.Template }

// BuiltIn returns the built-in template.
func BuiltIn() (*Template, error) { return parse("built-in", builtIn) }

// Parse returns the template of a user. An error means that the source is invalid.
func Parse(source string) (*Template, error) { return parse("value", variables+source) }

func parse(name, source string) (*Template, error) {
	parser := gotemplate.NewParser(gotemplate.Options{
		Name: name, Strict: true, Output: MaxConfig, Work: maxWork,
		Functions: template.FuncMap{"JoinHostPort": net.JoinHostPort},
	})
	parsed, err := parser.Parse(source)
	if err != nil {
		return nil, err
	}
	return &Template{parsed: parsed}, nil
}

// Render renders a configuration. An error that is not about the addresses is the template's.
func (t *Template) Render(c Config) ([]byte, error) {
	servers := make(map[string]any, len(c.Backends))
	for name, address := range c.Backends {
		if _, err := netip.ParseAddr(address); err != nil {
			return nil, fmt.Errorf("invalid address %q of machine %s: it must be an IP address", address, name)
		}
		servers[name] = address
	}
	return t.parsed.Execute(map[string]any{
		"IPv6":                     c.IPv6,
		"FrontendControlPlanePort": strconv.Itoa(c.Port),
		"BackendControlPlanePort":  strconv.Itoa(APIServerPort),
		"BackendServers":           servers,
	}, nil)
}
