package record_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/clusterctl/takeover/record"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func TestRecord(t *testing.T) {
	definition := func(plural, kind string, versions ...string) *apiextensionsv1.CustomResourceDefinition {
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: plural + ".cluster.x-k8s.io"}}
		crd.Spec.Group, crd.Spec.Scope = "cluster.x-k8s.io", apiextensionsv1.NamespaceScoped
		crd.Spec.Names.Kind = kind
		for _, v := range versions {
			crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{Name: v, Served: v != "v1alpha4"})
		}
		return crd
	}
	secret := func(name, cluster string) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"cluster.x-k8s.io/cluster-name": cluster}},
			Data:       map[string][]byte{"tls.key": []byte("precious")},
		}
	}
	build := object.Builder{Namespace: "ns"}
	s := fakeapi.New(t, fakeapi.Options{Kinds: []func(*runtime.Scheme) error{apiextensionsv1.AddToScheme}, Objects: []client.Object{
		definition("clusters", "Cluster", "v1alpha4", "v1beta2"), definition("machines", "Machine", "v1beta2"),
		build.Cluster(), build.Machine("m"), secret("mine", "c"), secret("another", "d"),
	}})
	r, err := record.Read(t.Context(), s, client.ObjectKeyFromObject(build.Cluster()))
	testenv.Must(t, err)
	names := map[string][]string{}
	for file, objects := range r {
		for _, o := range objects {
			names[file] = append(names[file], o.GetKind()+" "+o.GetName())
		}
	}
	want := map[string][]string{
		"cluster.v1beta2": {"Cluster " + build.Cluster().Name, "Machine m"},
		"secrets":         {"Secret mine"},
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	directory := filepath.Join(t.TempDir(), "v1.9.3")
	files, err := r.Write(directory, "2-at-rest")
	testenv.Must(t, err)
	if diff := cmp.Diff([]string{"2-at-rest.cluster.v1beta2.json", "2-at-rest.secrets.json"}, bases(files)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		testenv.Must(t, err)
		if strings.Contains(string(content), "cHJlY2lvdXM") {
			t.Errorf("%s has the content of a Secret", file)
		}
		var list []map[string]any
		testenv.Must(t, json.Unmarshal(content, &list))
	}
	if _, err := record.Read(t.Context(), s, client.ObjectKey{Namespace: "ns", Name: "none"}); err == nil {
		t.Error("a Cluster that does not exist is recorded")
	}
}

func bases(paths []string) []string {
	var all []string
	for _, path := range paths {
		all = append(all, filepath.Base(path))
	}
	return slices.Sorted(slices.Values(all))
}

func TestStrip(t *testing.T) {
	for _, tc := range []struct {
		reason, object, want string
	}{
		{
			reason: "a Secret keeps the names of its keys", object: `{"kind":"Secret","data":{"value":"eA=="},"type":"cluster.x-k8s.io/secret"}`,
			want: `{"kind":"Secret","data":{"value":"stripped"},"type":"cluster.x-k8s.io/secret"}`,
		},
		{
			reason: "bootstrap configuration", object: `{"kind":"KubeadmConfig","spec":{"files":[{"path":"/x","content":"y","contentFrom":{"secret":{"name":"s","key":"k"}}}],
				"users":[{"name":"u","passwd":"p","sshAuthorizedKeys":["k"]}],"joinConfiguration":{"discovery":{"bootstrapToken":{"token":"t","apiServerEndpoint":"e"}}}}}`,
			want: `{"kind":"KubeadmConfig","spec":{"files":[{"path":"/x","content":"stripped","contentFrom":{"secret":{"name":"s","key":"k"}}}],
				"users":[{"name":"u","passwd":"stripped","sshAuthorizedKeys":["k"]}],"joinConfiguration":{"discovery":{"bootstrapToken":{"token":"stripped","apiServerEndpoint":"e"}}}}}`,
		},
		{
			reason: "variables of a topology", object: `{"kind":"Cluster","spec":{"topology":{"variables":[{"name":"adminPassword","value":"x"},{"name":"size","value":"big"}]}}}`,
			want: `{"kind":"Cluster","spec":{"topology":{"variables":[{"name":"adminPassword","value":"stripped"},{"name":"size","value":"big"}]}}}`,
		},
		{
			reason: "what was there before, and what another version has",
			object: `{"kind":"KubeadmConfig","metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}",
				"cluster.x-k8s.io/conversion-data":"{\"spec\":{\"files\":[{\"content\":\"y\"}]}}","a":"b"}}}`,
			want: `{"kind":"KubeadmConfig","metadata":{"annotations":{"cluster.x-k8s.io/conversion-data":"{\"spec\":{\"files\":[{\"content\":\"stripped\"}]}}","a":"b"}}}`,
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			o, want := &unstructured.Unstructured{}, map[string]any{}
			testenv.Must(t, json.Unmarshal([]byte(tc.object), &o.Object), json.Unmarshal([]byte(tc.want), &want))
			record.Strip(o)
			if diff := cmp.Diff(want, maps.Clone(o.Object)); diff != "" {
				t.Errorf("stripped (-want +got):\n%s", diff)
			}
		})
	}
}
