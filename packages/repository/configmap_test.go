package repository

import (
	"bytes"
	"compress/gzip"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages"
)

const metadataOfConfigMap = "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nreleaseSeries: [{major: 1, minor: 0, contract: v1beta1}]\n"

func released(name string, change func(*corev1.ConfigMap)) corev1.ConfigMap {
	m := corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"components": "of " + name, "metadata": metadataOfConfigMap}}
	if change != nil {
		change(&m)
	}
	return m
}

func compressed(t *testing.T, plain []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestConfigMaps(t *testing.T) {
	zip := func(raw []byte) func(*corev1.ConfigMap) {
		return func(m *corev1.ConfigMap) {
			m.Annotations = map[string]string{"provider.cluster.x-k8s.io/compressed": "true"}
			delete(m.Data, "components")
			m.BinaryData = map[string][]byte{"components": raw}
		}
	}
	for _, tc := range []struct {
		reason              string
		list                []corev1.ConfigMap
		version, components string
		failure             string
	}{
		{reason: "the latest version", list: []corev1.ConfigMap{released("v1.0.1", nil), released("v1.0.2", nil), released("v1.0.3-rc.0", nil)},
			version: "v1.0.2", components: "of v1.0.2"},
		{reason: "the label before the name", list: []corev1.ConfigMap{released("any", func(m *corev1.ConfigMap) {
			m.Labels = map[string]string{"provider.cluster.x-k8s.io/version": "v1.0.4"}
		})}, version: "v1.0.4", components: "of any"},
		{reason: "others are ignored", list: []corev1.ConfigMap{released("other", nil), released("v1.0.1", nil)}, version: "v1.0.1", components: "of v1.0.1"},
		{reason: "compressed", list: []corev1.ConfigMap{released("v1.0.1", zip(compressed(t, []byte("long"))))}, version: "v1.0.1", components: "long"},
		{reason: "not compressed, although it should be", list: []corev1.ConfigMap{released("v1.0.1", zip([]byte("plain")))}, version: "v1.0.1",
			failure: "key components of ConfigMap v1.0.1 has the annotation provider.cluster.x-k8s.io/compressed, but cannot be decompressed"},
		{reason: "a bomb", list: []corev1.ConfigMap{released("v1.0.1", zip(compressed(t, make([]byte, maxDownload+1))))}, version: "v1.0.1",
			failure: "it is larger than"},
		{reason: "no components", list: []corev1.ConfigMap{released("v1.0.1", func(m *corev1.ConfigMap) { delete(m.Data, "components") })},
			version: "v1.0.1", failure: "ConfigMap v1.0.1 has no key components"},
		{reason: "twice", list: []corev1.ConfigMap{released("v1.0.1", nil), released("b", func(m *corev1.ConfigMap) {
			m.Labels = map[string]string{"provider.cluster.x-k8s.io/version": "v1.0.1"}
		})}, failure: "ConfigMaps v1.0.1 and b both have version v1.0.1 of infrastructure-x: delete one of them"},
		{reason: "none", failure: "ConfigMaps of namespace n has no version"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			p := packages.Provider{Name: "x", Type: clusterctlv1.InfrastructureProviderType}
			c, err := FromConfigMaps(p, "ConfigMaps of namespace n", tc.list)
			var version string
			var raw []byte
			if err == nil {
				version, err = c.DefaultVersion(t.Context())
			}
			if err == nil {
				raw, err = c.File(t.Context(), version, c.ComponentsFile())
			}
			if version != tc.version || string(raw) != tc.components {
				t.Errorf("got version %q with %q, want %q with %q", version, raw, tc.version, tc.components)
			}
			switch {
			case tc.failure == "" && err != nil:
				t.Error(err)
			case tc.failure != "" && (err == nil || !strings.Contains(err.Error(), tc.failure)):
				t.Errorf("got error %v, want %q", err, tc.failure)
			}
		})
	}
}

func TestToConfigMap(t *testing.T) {
	p := packages.Provider{Name: "x", Type: clusterctlv1.RuntimeExtensionProviderType}
	random := make([]byte, 2*maxConfigMap)
	source := rand.NewChaCha8([32]byte{})
	if _, err := source.Read(random); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		reason     string
		components []byte
		compressed bool
	}{
		{"small", []byte("small"), false},
		{"large", bytes.Repeat([]byte("x"), maxPlain+1), true},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			m, err := ToConfigMap(p, "v1.0.3", "n", tc.components, []byte(metadataOfConfigMap))
			if err != nil {
				t.Fatal(err)
			}
			if _, is := m.Annotations["provider.cluster.x-k8s.io/compressed"]; is != tc.compressed || m.Name != "runtimeextension-x-v1.0.3" {
				t.Errorf("ConfigMap %s has annotations %v", m.Name, m.Annotations)
			}
			c, err := FromConfigMaps(p, "ConfigMap", []corev1.ConfigMap{*m})
			if err != nil {
				t.Fatal(err)
			}
			check(t, c, "v1.0.3", string(tc.components), "")
		})
	}
	if _, err := ToConfigMap(p, "v1.0.3", "n", random, nil); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("got %v", err)
	}
}
