package webhook

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
)

// extensionConfig returns an ExtensionConfig with all defaults, changed by change.
func extensionConfig(change ...func(*runtimev1.ExtensionConfig)) *runtimev1.ExtensionConfig {
	c := &runtimev1.ExtensionConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "e"},
		Spec: runtimev1.ExtensionConfigSpec{
			ClientConfig:      runtimev1.ClientConfig{Service: runtimev1.ServiceReference{Namespace: "ns", Name: "svc", Port: ptr.To[int32](443)}},
			NamespaceSelector: &metav1.LabelSelector{},
		},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func atURL(url string) func(*runtimev1.ExtensionConfig) {
	return func(c *runtimev1.ExtensionConfig) { c.Spec.ClientConfig = runtimev1.ClientConfig{URL: url} }
}

func inCluster(change func(*runtimev1.ServiceReference)) func(*runtimev1.ExtensionConfig) {
	return func(c *runtimev1.ExtensionConfig) { change(&c.Spec.ClientConfig.Service) }
}

func withoutDefaults(c *runtimev1.ExtensionConfig) {
	c.Spec.NamespaceSelector, c.Spec.ClientConfig.Service.Port = nil, nil
}

func TestExtensionConfigDefault(t *testing.T) {
	selecting := func(c *runtimev1.ExtensionConfig) {
		c.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	}
	otherPort := inCluster(func(s *runtimev1.ServiceReference) { s.Port = ptr.To[int32](9443) })
	for _, tc := range []struct {
		reason   string
		in, want *runtimev1.ExtensionConfig
	}{
		{"port and selector are set", extensionConfig(withoutDefaults), extensionConfig()},
		{"a URL has no port to set", extensionConfig(atURL("https://e")), extensionConfig(atURL("https://e"))},
		{"values are kept", extensionConfig(selecting, otherPort), extensionConfig(selecting, otherPort)},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if err := (ExtensionConfig{}).Default(t.Context(), tc.in); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, tc.in); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestExtensionConfigValidate(t *testing.T) {
	const (
		prefix   = `ExtensionConfig.runtime.cluster.x-k8s.io "e" is invalid: `
		client   = prefix + "spec.clientConfig"
		disabled = prefix + "spec: Forbidden: ExtensionConfigs require the feature gate RuntimeSDK"
		path     = "must be the path of a URL, and start with /"
	)
	named := func(name string) func(*runtimev1.ExtensionConfig) {
		return func(c *runtimev1.ExtensionConfig) { c.Name = name }
	}
	under := func(path string) func(*runtimev1.ExtensionConfig) {
		return inCluster(func(s *runtimev1.ServiceReference) { s.Path = path })
	}
	port := func(port int32) func(*runtimev1.ExtensionConfig) {
		return inCluster(func(s *runtimev1.ServiceReference) { s.Port = ptr.To(port) })
	}
	deleting := func(c *runtimev1.ExtensionConfig) { c.DeletionTimestamp = ptr.To(metav1.Now()) }
	for _, tc := range []struct {
		reason   string
		disabled bool
		old, in  *runtimev1.ExtensionConfig
		want     string
	}{
		{reason: "valid", in: extensionConfig()},
		{reason: "a URL", in: extensionConfig(atURL("https://e.example.com:9443/base"))},
		{reason: "the server can change", old: extensionConfig(), in: extensionConfig(atURL("https://e"))},
		{reason: "a path", in: extensionConfig(under("/base/path"))},
		{reason: "the gate is disabled", disabled: true, in: extensionConfig(), want: disabled},
		{reason: "the gate is disabled, update", disabled: true, old: extensionConfig(), in: extensionConfig(), want: disabled},
		{reason: "finalizers can be removed without the gate", disabled: true, old: extensionConfig(deleting), in: extensionConfig(deleting)},
		{reason: "a dot in the name", in: extensionConfig(named("e.f")), want: `ExtensionConfig.runtime.cluster.x-k8s.io "e.f" is invalid: metadata.name: Invalid value: "e.f": ` +
			`must not contain dots`},
		{reason: "no server", in: extensionConfig(func(c *runtimev1.ExtensionConfig) { c.Spec.ClientConfig = runtimev1.ClientConfig{} }),
			want: client + ": Required value: either url or service must be set"},
		{reason: "two servers", in: extensionConfig(func(c *runtimev1.ExtensionConfig) { c.Spec.ClientConfig.URL = "https://e" }),
			want: client + ": Forbidden: only one of url and service must be set"},
		{reason: "http", in: extensionConfig(atURL("http://e")), want: client + ".url: Invalid value: must have the scheme https"},
		{reason: "no scheme", in: extensionConfig(atURL("e.example.com")), want: client + ".url: Invalid value: must have the scheme https"},
		{reason: "no URL, whose password is not quoted", in: extensionConfig(atURL("https://user:secret@e:port")),
			want: client + ".url: Invalid value: must be a URL, such as https://extension.example.com:9443"},
		{reason: "no Service name", in: extensionConfig(inCluster(func(s *runtimev1.ServiceReference) { s.Name = "" })), want: client + ".service.name: Required value: must be set"},
		{reason: "no namespace", in: extensionConfig(inCluster(func(s *runtimev1.ServiceReference) { s.Namespace = "" })), want: client + ".service.namespace: Required value: must be set"},
		{reason: "a name that no Service has", in: extensionConfig(inCluster(func(s *runtimev1.ServiceReference) { s.Name = "1svc" })),
			want: client + `.service.name: Invalid value: "1svc": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')`},
		{reason: "a namespace that is another host", in: extensionConfig(inCluster(func(s *runtimev1.ServiceReference) { s.Namespace = "ns.evil.example.com#" })),
			want: client + `.service.namespace: Invalid value: "ns.evil.example.com#": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`},
		{reason: "a relative path", in: extensionConfig(under("base")), want: client + `.service.path: Invalid value: "base": ` + path},
		{reason: "a URL as path", in: extensionConfig(under("https://e/")), want: client + `.service.path: Invalid value: "https://e/": ` + path},
		{reason: "no port", in: extensionConfig(port(0)), want: client + ".service.port: Invalid value: 0: must be between 1 and 65535, inclusive"},
		{reason: "a large port", in: extensionConfig(port(65536)), want: client + ".service.port: Invalid value: 65536: must be between 1 and 65535, inclusive"},
		{reason: "an unknown operator", in: extensionConfig(func(c *runtimev1.ExtensionConfig) {
			c.Spec.NamespaceSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}
		}), want: prefix + `spec.namespaceSelector: Invalid value: {"matchExpressions":[{"key":"a","operator":"Near"}]}: "Near" is not a valid label selector operator`},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			validator := ExtensionConfig{Enabled: !tc.disabled}.validator()
			_, err := validator.ValidateUpdate(t.Context(), tc.old, tc.in)
			if tc.old == nil {
				_, err = validator.ValidateCreate(t.Context(), tc.in)
			}
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}
