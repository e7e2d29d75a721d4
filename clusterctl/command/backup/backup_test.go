package backup

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

const namespace = "ns"

// settings are those with a store and a Secret for the key.
func settings(store, key string) fleetv1.BackupSettings {
	return fleetv1.BackupSettings{
		StoreRef: fleetv1.LocalReference{Name: store}, Encryption: fleetv1.Encryption{IdentitySecretRef: &fleetv1.LocalReference{Name: key}},
	}
}

// policy returns a policy that selects Clusters with a label.
func policy(name, label string) *fleetv1.EtcdBackupPolicy {
	return &fleetv1.EtcdBackupPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: fleetv1.EtcdBackupPolicySpec{
			ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{"team": label}}, BackupSettings: settings("store-of-"+name, "key"),
		},
	}
}

func connect(t *testing.T, objects ...client.Object) *management.Cluster {
	t.Helper()
	scheme, err := management.Scheme()
	testenv.Must(t, err)
	return &management.Cluster{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), Namespace: namespace}
}

func TestSettings(t *testing.T) {
	cluster := &unstructured.Unstructured{}
	cluster.SetGroupVersionKind(tree.ClusterKind)
	cluster.SetNamespace(namespace)
	cluster.SetName("c")
	cluster.SetLabels(map[string]string{"team": "blue"})
	elsewhere := policy("elsewhere", "blue")
	elsewhere.Namespace = "other"
	tests := []struct {
		reason   string
		options  Options
		policies []client.Object
		want     fleetv1.BackupSettings
		err      string
	}{
		{reason: "those of the policy that selects the Cluster", policies: []client.Object{policy("a", "red"), policy("b", "blue"), elsewhere},
			want: settings("store-of-b", "key")},
		{reason: "those of the policy of the user's choice, whatever it selects", options: Options{Policy: "a"},
			policies: []client.Object{policy("a", "red"), policy("b", "blue")}, want: settings("store-of-a", "key")},
		{reason: "those of flags", options: Options{Store: "mine", IdentitySecret: "own"}, policies: []client.Object{policy("b", "blue")},
			want: settings("mine", "own")},
		{reason: "several policies", policies: []client.Object{policy("b", "blue"), policy("a", "blue")},
			err: "several EtcdBackupPolicies select cluster c: choose one with --policy: a, b"},
		{reason: "no policy", policies: []client.Object{policy("a", "red"), elsewhere},
			err: "no EtcdBackupPolicy in namespace ns selects cluster c: use --store with --identity-secret or --recipient"},
		{reason: "a policy that does not exist", options: Options{Policy: "x"}, err: "there is no EtcdBackupPolicy x in namespace ns"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			got, err := tt.options.settings(t.Context(), connect(t, tt.policies...), cluster)
			if tt.err != "" {
				if err == nil || err.Error() != tt.err {
					t.Fatalf("got %v, want %s", err, tt.err)
				}
				return
			}
			testenv.Must(t, err)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestCheck: a backup that could only wait is not created.
func TestCheck(t *testing.T) {
	store := &fleetv1.BackupStore{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "s"}}
	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "k"}}
	tests := []struct {
		reason  string
		objects []client.Object
		want    string
	}{
		{"store and key exist", []client.Object{store, key}, ""},
		{"the store does not", []client.Object{key}, "there is no BackupStore s in namespace ns"},
		{"the key does not", []client.Object{store}, "there is no Secret k in namespace ns: make a key with"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			err := check(t.Context(), connect(t, tt.objects...), namespace, settings("s", "k"))
			if (err == nil) != (tt.want == "") || err != nil && !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
