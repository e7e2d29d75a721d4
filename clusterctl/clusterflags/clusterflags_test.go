package clusterflags

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	controlplanev1beta1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/rollout"
)

func TestResources(t *testing.T) {
	scheme, err := management.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	named := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&clusterv1beta1.MachineDeployment{ObjectMeta: named("ns", "md-0")}, &clusterv1beta1.MachineDeployment{ObjectMeta: named("other", "md-1")},
		&controlplanev1beta1.KubeadmControlPlane{ObjectMeta: named("ns", "kcp")},
	).Build()
	streams, _ := iostreams.Test()
	f := factory.New(streams, func(string) (string, bool) { return "", false }, nil)
	for _, tc := range []struct {
		reason, typed string
		types         []string
		fails         bool
		want          []string
		space         bool
	}{
		{"types are completed first, without a space", "m", rollout.Types(), false, []string{"kubeadmcontrolplane/", "machinedeployment/"}, false},
		{"only supported types are offered", "", []string{rollout.MachineDeployment}, false, []string{"machinedeployment/"}, false},
		{"names of the namespace follow", "machinedeployment/", rollout.Types(), false, []string{"machinedeployment/md-0"}, true},
		{"the case of types does not matter", "KubeadmControlPlane/k", rollout.Types(), false, []string{"kubeadmcontrolplane/kcp"}, true},
		{"there are no names of unknown types", "secret/", rollout.Types(), false, nil, true},
		{"errors do not disturb the user's input", "machinedeployment/", rollout.Types(), true, nil, true},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			f.Connect = func(management.Kubeconfig) (*management.Cluster, error) {
				if tc.fails {
					return nil, errors.New("unreachable")
				}
				return &management.Cluster{Client: c}, nil
			}
			cmd := &cobra.Command{}
			cmd.SetContext(context.Background())
			namespace := "ns"
			got, directive := Resources(f, &management.Kubeconfig{}, &namespace, rollout.Kinds(tc.types))(cmd, nil, tc.typed)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if space := directive&cobra.ShellCompDirectiveNoSpace == 0; space != tc.space || directive&cobra.ShellCompDirectiveNoFileComp == 0 {
				t.Errorf("directive is %v", directive)
			}
		})
	}
}
