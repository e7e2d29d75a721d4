package config

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/conversion"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// TestDescribedKubeconfigs writes the kubeconfig of a join, whichever version of the API describes it.
func TestDescribedKubeconfigs(t *testing.T) {
	const (
		head = `apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: Y2E=
    proxy-url: http://proxy:3128
    server: https://api:443
    tls-server-name: api
  name: default
contexts:
- context:
    cluster: default
    user: default
  name: default
current-context: default
kind: Config
users:
- name: default
  user:
`
		cluster = `cluster: {server: "https://api:443", tlsServerName: api, certificateAuthorityData: Y2E=, proxyURL: "http://proxy:3128"}, user: `
	)
	tests := []struct {
		reason       string
		controlPlane bool
		kubeconfig   string
		want         string
	}{
		{
			reason:     "a command that authenticates a worker",
			kubeconfig: cluster + `{exec: {command: /bin/login, args: [-x], env: [{name: A, value: b}], apiVersion: client.authentication.k8s.io/v1beta1, provideClusterInfo: true}}`,
			want: head + `    exec:
      apiVersion: client.authentication.k8s.io/v1beta1
      args:
      - -x
      command: /bin/login
      env:
      - name: A
        value: b
      interactiveMode: Never
      provideClusterInfo: true
`,
		},
		{
			reason: "a provider that authenticates a control plane machine", controlPlane: true,
			kubeconfig: cluster + `{authProvider: {name: cloud, config: {region: west}}}`,
			want: head + `    auth-provider:
      config:
        region: west
      name: cloud
`,
		},
	}
	for _, tt := range tests {
		for _, version := range []string{"v1beta1", "v1beta2"} {
			t.Run(version+": "+tt.reason, func(t *testing.T) {
				join := `{discovery: {file: {kubeConfigPath: /etc/discovery.conf, kubeConfig: {` + tt.kubeconfig + `}}}`
				if tt.controlPlane {
					join += `, controlPlane: {localAPIEndpoint: {bindPort: 6443}}`
				}
				spec := specOf(t, version, `{joinConfiguration: `+join+`}}`)
				w := newWorld(t, testCA(t), secretOf(pki.EtcdCA, true), secretOf(pki.FrontProxyCA, true), secretOf(pki.ServiceAccount, true),
					initialized(newCluster()), newMachine("m", tt.controlPlane), newConfig("m", spec))
				w.workload.Err = remote.ErrNotConnected // No token is created.
				w.mustReconcile(t, "m")
				if diff := cmp.Diff(tt.want, w.document(t, "m").file("/etc/discovery.conf")); diff != "" {
					t.Errorf("kubeconfig (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// specOf parses a spec that a client wrote in a version of the API.
func specOf(t *testing.T, version, text string) bootstrapv1.KubeadmConfigSpec {
	t.Helper()
	encoded, err := yaml.YAMLToJSONStrict([]byte(text))
	testenv.Must(t, err)
	config := &bootstrapv1.KubeadmConfig{}
	if version == "v1beta2" {
		testenv.Must(t, json.Unmarshal(encoded, &config.Spec))
		return config.Spec
	}
	older := &bootstrapv1beta1.KubeadmConfig{}
	testenv.Must(t, json.Unmarshal(encoded, &older.Spec), conversion.Shared().Convert(t.Context(), older, config))
	return config.Spec
}
