package kubeadmtypes

import (
	"bufio"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/conversion"
)

// Whatever a spec contains: kubeadm's configuration is two documents with the same content, in the API version of the Kubernetes
// version, and is written the same each time. The same is in v1beta1 of our API, whose types are those of kubeadm's v1beta3.
func FuzzInit(f *testing.F) {
	for _, version := range []string{"v1.30.0", "1.21.14", "v1.14.0", "v1.22.0-rc.1", "x", "", "v1.15", "v99.0.0+é"} {
		f.Add([]byte(`{"apiServer":{"extraArgs":[{"name":"v","value":"4"},{"name":"a","value":"é\n---\nkind: X"}],"certSANs":["a"],"extraVolumes":[{"name":"a","readOnly":false},{"readOnly":true}]},"etcd":{"local":{"dataDir":"/x","extraArgs":[{"name":"a","value":""}]}},"featureGates":{"A":true}}`),
			[]byte(`{"bootstrapTokens":[{"token":"abcdef.0123456789abcdef","ttlSeconds":3600},{"token":"abcdef.0123456789abcdef","expires":"2020-01-01T00:00:00Z"}],"nodeRegistration":{"name":"{{ ds.meta_data.local_hostname }}","taints":[],"kubeletExtraArgs":[{"name":"x","value":"y"}],"imagePullPolicy":"Always","imagePullSerial":true},"skipPhases":["a"],"patches":{"directory":"/p"},"timeouts":{"controlPlaneComponentHealthCheckSeconds":240,"discoverySeconds":1}}`), version)
		f.Add([]byte(`{"etcd":{"external":{"endpoints":["https://e"]}},"dns":{"imageTag":"x"},"useHyperKubeImage":true}`), []byte(`{"nodeRegistration":{"taints":null},"localAPIEndpoint":{"advertiseAddress":"1.2.3.4","bindPort":-1}}`), version)
		f.Add([]byte(`{}`), []byte(`{"bootstrapTokens":[{"token":"x"}]}`), version)
		f.Add([]byte(`{}`), []byte(`{}`), version)
	}
	f.Fuzz(func(t *testing.T, cluster, initialize []byte, version string) {
		config := &bootstrapv1.KubeadmConfig{}
		c, i := &config.Spec.ClusterConfiguration, &config.Spec.InitConfiguration
		if len(cluster)+len(initialize) > 16<<10 || json.Unmarshal(cluster, c) != nil || json.Unmarshal(initialize, i) != nil {
			t.Skip("not a KubeadmConfig that an API server accepts")
		}
		known := Cluster{Name: "c", Version: "v", PodSubnet: "10.0.0.0/8"}
		text, err := Init(c, i, known, version)
		again, errAgain := Init(c, i, known, version)
		if text != again || (err == nil) != (errAgain == nil) {
			t.Errorf("%q, %v, then %q, %v", text, err, again, errAgain)
		}
		wanted, errVersion := versionFor(version)
		if err != nil {
			return
		}
		if errVersion != nil {
			t.Fatalf("version %q: %v", version, errVersion)
		}
		checkDocuments(t, text, wanted)
		if wanted != v1beta3 {
			return // They have less, or more.
		}
		older := &bootstrapv1beta1.KubeadmConfig{}
		if err := conversion.Shared().Convert(t.Context(), config, older); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(rendered(t, &older.Spec, known), text); diff != "" {
			t.Errorf("-v1beta1 +v1beta2:\n%s", diff)
		}
	})
}

// checkDocuments checks that there are two documents in an API version.
func checkDocuments(t *testing.T, text, version string) {
	t.Helper()
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for _, kind := range []string{"ClusterConfiguration", "InitConfiguration"} {
		document, err := reader.Read()
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		var head struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal(document, &head); err != nil || head.APIVersion != version || head.Kind != kind {
			t.Fatalf("%+v, %v instead of %s %s\n%s", head, err, version, kind, document)
		}
	}
	if _, err := reader.Read(); err == nil {
		t.Errorf("there is a third document:\n%s", text)
	}
}

// rendered returns the configuration of a spec of v1beta1, without fields that have no effect.
func rendered(t *testing.T, spec *bootstrapv1beta1.KubeadmConfigSpec, known Cluster) string {
	t.Helper()
	c, i := spec.ClusterConfiguration, spec.InitConfiguration
	if c == nil {
		c = &bootstrapv1beta1.ClusterConfiguration{}
	}
	if i == nil {
		i = &bootstrapv1beta1.InitConfiguration{}
	}
	c.ClusterName, c.KubernetesVersion, c.Networking.PodSubnet = known.Name, known.Version, known.PodSubnet
	c.CertificateValidityPeriodDays, c.CACertificateValidityPeriodDays, c.EncryptionAlgorithm = 0, 0, ""
	c.APIServer.ExtraEnvs, c.ControllerManager.ExtraEnvs, c.Scheduler.ExtraEnvs = nil, nil, nil
	if c.Etcd.Local != nil {
		c.Etcd.Local.ExtraEnvs = nil
	}
	i.NodeRegistration.ImagePullSerial = nil
	c.APIVersion, c.Kind, i.APIVersion, i.Kind = v1beta3, "ClusterConfiguration", v1beta3, "InitConfiguration"
	var out strings.Builder
	for _, configuration := range []any{c, i} {
		doc, err := runtime.DefaultUnstructuredConverter.ToUnstructured(configuration)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := yaml.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("---\n" + string(raw))
	}
	return out.String()
}
