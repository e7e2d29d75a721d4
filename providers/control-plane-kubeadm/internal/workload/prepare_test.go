package workload

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
)

func TestPrepareVersion(t *testing.T) {
	c, requests := newCluster(t,
		configMap("kubeadm-config", map[string]string{"ClusterConfiguration": stored129}),
		configMap("kubelet-config", map[string]string{"kubelet": "cgroupDriver: cgroupfs"}),
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "kubeadm:get-nodes"}},
	)
	prepare := func(version string, config *bootstrapv1.ClusterConfiguration, want ...string) {
		t.Helper()
		if err := c.PrepareVersion(t.Context(), controlPlane(version, config)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, requests.requests()); diff != "" {
			t.Errorf("requests for %s: -want +got:\n%s", version, diff)
		}
	}
	prepare("v1.28.1", nil,
		"get ClusterRole kubeadm:get-nodes",
		"get ClusterRoleBinding kubeadm:get-nodes", "create ClusterRoleBinding kubeadm:get-nodes",
		"get Role kubeadm:kubelet-config", "create Role kubeadm:kubelet-config",
		"get RoleBinding kubeadm:kubelet-config", "create RoleBinding kubeadm:kubelet-config",
		"get ConfigMap kubelet-config",
		"get ConfigMap kubeadm-config", "patch ConfigMap kubeadm-config",
	)
	prepare("v1.28.1", nil) // Nothing has changed.
	prepare("v1.29.0", nil,
		"get ClusterRoleBinding kubeadm:cluster-admins", "create ClusterRoleBinding kubeadm:cluster-admins",
		"get ConfigMap kubelet-config",
		"get ConfigMap kubeadm-config", "patch ConfigMap kubeadm-config",
	)
	prepare("v1.29.0", &bootstrapv1.ClusterConfiguration{ImageRepository: "example.com"},
		"get ConfigMap kubelet-config",
		"get ConfigMap kubeadm-config", "patch ConfigMap kubeadm-config",
	)
	prepare("v1.29.0", &bootstrapv1.ClusterConfiguration{ImageRepository: "example.com"})
	prepare("v1.36.0", &bootstrapv1.ClusterConfiguration{ImageRepository: "example.com"},
		"get ClusterRoleBinding kubeadm:apiserver-kubelet-client", "create ClusterRoleBinding kubeadm:apiserver-kubelet-client",
		"get ConfigMap kubelet-config",
		"get ConfigMap kubeadm-config", "patch ConfigMap kubeadm-config",
	)

	binding := &rbacv1.ClusterRoleBinding{}
	if err := c.Client.Get(t.Context(), client.ObjectKey{Name: "kubeadm:cluster-admins"}, binding); err != nil {
		t.Fatal(err)
	}
	want := clusterBinding("kubeadm:cluster-admins", "cluster-admin", groups("kubeadm:cluster-admins")...)
	if diff := cmp.Diff([]any{want.RoleRef, want.Subjects}, []any{binding.RoleRef, binding.Subjects}); diff != "" {
		t.Errorf("cluster-admins: -want +got:\n%s", diff)
	}
	if err := c.Client.Get(t.Context(), client.ObjectKey{Name: "kubeadm:apiserver-kubelet-client"}, binding); err != nil {
		t.Fatal(err)
	}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "kube-apiserver-kubelet-client"}}
	if diff := cmp.Diff(subjects, binding.Subjects); diff != "" || binding.RoleRef.Name != "system:kubelet-api-admin" {
		t.Errorf("role %s, subjects -want +got:\n%s", binding.RoleRef.Name, diff)
	}
}

func TestPrepareVersionIsContinued(t *testing.T) {
	c, requests := newCluster(t, configMap("kubeadm-config", map[string]string{"ClusterConfiguration": stored129}))
	kcp := controlPlane("v1.28.1", nil)
	requests.fail["patch ConfigMap kubeadm-config"] = errors.New("the network is down")
	if err := c.PrepareVersion(t.Context(), kcp); err == nil || !strings.Contains(err.Error(), "the network is down") {
		t.Fatalf("PrepareVersion(): %v, want that the network is down", err)
	}
	requests.requests()
	delete(requests.fail, "patch ConfigMap kubeadm-config")
	if err := c.PrepareVersion(t.Context(), kcp); err != nil {
		t.Fatal(err)
	}
	want := []string{"get ConfigMap kubelet-config", "get ConfigMap kubeadm-config", "patch ConfigMap kubeadm-config"}
	if diff := cmp.Diff(want, requests.requests()); diff != "" {
		t.Errorf("requests after an interruption: -want +got:\n%s", diff)
	}
}

func TestPrepareVersionWithAnInvalidVersion(t *testing.T) {
	c, requests := newCluster(t)
	err := c.PrepareVersion(t.Context(), controlPlane("latest", nil))
	if err == nil || !strings.Contains(err.Error(), `parsing the version of the control plane "latest"`) || len(requests.requests()) > 0 {
		t.Errorf("PrepareVersion(): %v", err)
	}
}

func TestPrepareKubelet(t *testing.T) {
	tests := map[string]struct {
		reason  string
		version string
		stored  map[string]string
		name    string
		want    string
		writes  int
	}{
		"Copied": {
			reason: "The configuration of the previous minor version is copied.", version: "1.23.0",
			stored: map[string]string{"kubelet-config-1.22": "cgroupDriver: cgroupfs\nx: 1\n"}, name: "kubelet-config-1.23", want: "{cgroupDriver: cgroupfs, x: 1}", writes: 1,
		},
		"Renamed": {
			reason: "From v1.24 on, there is one configuration for all versions.", version: "1.24.0",
			stored: map[string]string{"kubelet-config-1.23": "x: 1\n"}, name: "kubelet-config", want: "{cgroupDriver: systemd, x: 1}", writes: 1,
		},
		"Amended": {
			reason: "The driver is set if it is not.", version: "1.30.0",
			stored: map[string]string{"kubelet-config": "x: 1\n"}, name: "kubelet-config", want: "{cgroupDriver: systemd, x: 1}", writes: 1,
		},
		"Old": {
			reason: "Before v1.21, the default driver was another one.", version: "1.20.0",
			stored: map[string]string{"kubelet-config-1.19": "x: 1\n"}, name: "kubelet-config-1.20", want: "{x: 1}", writes: 1,
		},
		"Kept": {
			reason: "A complete configuration does not change.", version: "1.30.0",
			stored: map[string]string{"kubelet-config": "cgroupDriver: cgroupfs\n"}, name: "kubelet-config", want: "{cgroupDriver: cgroupfs}",
		},
		"None": {reason: "Without a configuration, none is created.", version: "1.24.0"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			for name, text := range tc.stored {
				objects = append(objects, configMap(name, map[string]string{"kubelet": text}))
			}
			c, requests := newCluster(t, objects...)
			for range 2 {
				if err := c.prepareKubelet(t.Context(), semver.MustParse(tc.version)); err != nil {
					t.Fatal(err)
				}
			}
			writes := slices.DeleteFunc(requests.requests(), func(r string) bool { return strings.HasPrefix(r, "get ") })
			if len(writes) != tc.writes {
				t.Errorf("%s\nwrites are %v, want %d", tc.reason, writes, tc.writes)
			}
			if tc.name == "" {
				return
			}
			if diff := cmp.Diff(document(t, tc.want), document(t, data(t, c, tc.name)["kubelet"])); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
