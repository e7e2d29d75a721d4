package controller

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// mistake is a wrong value in a provider object or a release that the API server accepts: a condition reports what is wrong, where, and
// what to do.
type mistake struct {
	reason string
	// kind and name are those of the object. Empty: InfrastructureProvider wrong.
	kind clusterctlv1.ProviderType
	name string
	// spec is what is wrong. Without a fetchConfig, it gets the ConfigMap of the release.
	spec string
	// release changes the ConfigMap with the release.
	release func(m *corev1.ConfigMap)
	// because is the reason of the condition.
	because string
	words   []string
}

// secretValue must appear in no message, event or log.
const secretValue = "s3cr3t-of-mistakes"

// objectsOfMistakes exist before a mistake is made: another provider, what it has, and what specs of mistakes refer to.
const objectsOfMistakes = `
apiVersion: operator.cluster.x-k8s.io/v1alpha2
kind: InfrastructureProvider
metadata: {name: in-memory, namespace: capim-system, uid: other, creationTimestamp: "2020-01-01T00:00:00Z"}
spec: {fetchConfig: {selector: {}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: capim-manager-role, labels: {cluster.x-k8s.io/provider: infrastructure-in-memory}}
---
apiVersion: v1
kind: Secret
metadata: {name: variables, namespace: mistakes}
stringData: {SECRET_VALUE: ` + secretValue + `}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: empty, namespace: mistakes}
`

// data sets a key of the release; nil removes it.
func data(key string, value *string) func(*corev1.ConfigMap) {
	return func(m *corev1.ConfigMap) {
		if value == nil {
			delete(m.Data, key)
			return
		}
		m.Data[key] = *value
	}
}

// adds adds a document to the components of the release.
func adds(document string) func(*corev1.ConfigMap) {
	return func(m *corev1.ConfigMap) { m.Data["components"] += "---\n" + document }
}

// tryMistakes declares each mistake in a world of its own, and checks the condition, that nothing is installed, and that no value of the
// Secret is shown.
func tryMistakes(t *testing.T, kind clusterv1.ConditionType, mistakes []mistake) {
	t.Helper()
	for _, m := range mistakes {
		t.Run(m.reason, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.create(objectsOfMistakes)
			of, name := cmp.Or(m.kind, clusterctlv1.InfrastructureProviderType), cmp.Or(m.name, "wrong")
			release := simpleConfigMap("mistakes", name, "v1.0.0")
			if m.release != nil {
				m.release(release)
			}
			testenv.Must(t, w.Create(t.Context(), release))
			p := w.controller(of).kind.New()
			p.SetNamespace("mistakes")
			p.SetName(name)
			p.SetUID(types.UID(name))
			p.SetCreationTimestamp(metav1.NewTime(w.Clock.Now()))
			*p.GetSpec() = operatorv1.ProviderSpec{Version: "v1.0.0", FetchConfig: &operatorv1.FetchConfiguration{
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"provider-components": name}},
			}}
			if strings.Contains(m.spec, "fetchConfig") {
				p.GetSpec().FetchConfig = nil
			}
			testenv.Must(t, yaml.UnmarshalStrict([]byte(m.spec), p.GetSpec()))
			testenv.Must(t, w.Create(t.Context(), p))
			w.Writes = nil

			got := w.reconcile(w.provider(of, "mistakes", name))
			w.reports(got, kind, append([]string{"False " + m.because + ": "}, m.words...)...)
			for _, write := range w.Writes {
				if !strings.HasPrefix(write, fmt.Sprintf("patch %s", of)) {
					t.Errorf("the controller must write only the provider object, and sent %s", write)
				}
			}
			for where, text := range map[string]string{"log": w.log.String(), "events": strings.Join(w.Events(), "\n"), "object": encoded(t, got.Object)} {
				if strings.Contains(text, secretValue) {
					t.Errorf("the value of a Secret is in: %s", where)
				}
			}
		})
	}
}
