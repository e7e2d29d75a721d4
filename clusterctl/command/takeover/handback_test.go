package takeover

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/takeover"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// advice is that about the garbage collector.
const advice = "If definitions with v1beta2 are replaced by those of v1.7.9, restart kube-controller-manager afterwards: " +
	"its garbage collector would not find the objects that it has first seen in v1beta2, and what only it deletes would stay.\n"

func TestHandBack(t *testing.T) {
	for _, tc := range []struct {
		reason string
		stored string
		dryRun bool
		// serves is whether definitions serve v1beta2.
		serves bool
		// manager is whether one of this version still runs.
		manager bool
		// stopped is whether no manager runs.
		stopped          bool
		out, errOut, err string
		left             []string
	}{
		{reason: "it is removed", stored: "v1beta1", errOut: "1 of 1 objects changed: v1.7.9 has taken over\n" + advice},
		{
			reason: "a dry run shows it", stored: "v1beta1", dryRun: true, left: []string{clusterv1.MachineSetFinalizer},
			out: "remove finalizer cluster.x-k8s.io/machineset from MachineSet ns/s\n", errOut: "v1.7.9 can take over: 1 of 1 objects will be changed when it runs\n",
		},
		{
			reason: "definitions with v1beta2 will be replaced", stored: "v1beta1", dryRun: true, serves: true, left: []string{clusterv1.MachineSetFinalizer},
			out: "remove finalizer cluster.x-k8s.io/machineset from MachineSet ns/s\n", errOut: "v1.7.9 can take over: 1 of 1 objects will be changed when it runs\n" + advice,
		},
		{
			reason: "v1.7 could not read the objects", stored: "v1beta2", left: []string{clusterv1.MachineSetFinalizer},
			err: "nothing is changed, because v1.7.9 cannot take over yet:\n  objects of clusters.cluster.x-k8s.io may be stored in v1beta2",
		},
		{
			reason: "a manager adds it again", stored: "v1beta1", manager: true, left: []string{clusterv1.MachineSetFinalizer},
			err: "managers of this version still run, and have added 1 of what was removed: deploy v1.7.9 instead",
		},
		{
			reason: "no webhook is served, so that changes are rejected", stored: "v1beta1", stopped: true, left: []string{clusterv1.MachineSetFinalizer},
			err: "nothing is changed, because v1.7.9 does not run yet (--dry-run shows what will be):\n  Deployment ns/core is not rolled out",
		},
		{
			reason: "a dry run is for before", stored: "v1beta1", stopped: true, dryRun: true, left: []string{clusterv1.MachineSetFinalizer},
			out: "remove finalizer cluster.x-k8s.io/machineset from MachineSet ns/s\n", errOut: "v1.7.9 can take over: 1 of 1 objects will be changed when it runs\n",
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			set := object.Builder{Namespace: "ns"}.MachineSet("s", func(s *clusterv1.MachineSet) { s.Finalizers = []string{clusterv1.MachineSetFinalizer} })
			objects := []client.Object{set, core(tc.stopped)}
			for plural, kind := range map[string]string{
				"clusters": "Cluster", "machines": "Machine", "machinesets": "MachineSet", "machinedeployments": "MachineDeployment",
			} {
				objects = append(objects, &apiextensionsv1.CustomResourceDefinition{
					ObjectMeta: metav1.ObjectMeta{Name: plural + ".cluster.x-k8s.io"},
					Spec: apiextensionsv1.CustomResourceDefinitionSpec{
						Names:    apiextensionsv1.CustomResourceDefinitionNames{Kind: kind},
						Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1beta2", Served: tc.serves, Storage: true}},
					},
					Status: apiextensionsv1.CustomResourceDefinitionStatus{StoredVersions: []string{tc.stored}},
				})
			}
			s := fakeapi.New(t, fakeapi.Options{Kinds: []func(*runtime.Scheme) error{apiextensionsv1.AddToScheme, appsv1.AddToScheme, coordinationv1.AddToScheme}, Objects: objects})
			s.After = func(r fakeapi.Request, err error) error {
				if tc.manager && r.IsWrite() {
					testenv.Must(t, s.Get(t.Context(), client.ObjectKeyFromObject(set), set))
					set.Finalizers = []string{clusterv1.MachineSetFinalizer}
					testenv.Must(t, s.Update(t.Context(), set))
				}
				return err
			}
			to, err := takeover.Target("v1.7.9")
			testenv.Must(t, err)
			streams, output := iostreams.Test()
			err = handBack(t.Context(), &Options{IO: streams, DryRun: tc.dryRun}, s.ForController().Client, to)
			if (err != nil) != (tc.err != "") || err != nil && !strings.HasPrefix(err.Error(), tc.err) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
			if diff := cmp.Diff([]string{tc.out, tc.errOut}, []string{output.Out.String(), output.Err.String()}); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
			testenv.Must(t, s.Get(t.Context(), client.ObjectKeyFromObject(set), set))
			if diff := cmp.Diff(tc.left, set.Finalizers); diff != "" {
				t.Errorf("finalizers (-want +got):\n%s", diff)
			}
		})
	}
}

// core is the Deployment of v1.7.9's core manager.
func core(stopped bool) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "core", Labels: map[string]string{clusterv1.ProviderNameLabel: "cluster-api"},
	}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "proxy", Image: "proxy:v3"}, {Name: "manager", Image: "core:v1.7.9"}}
	if !stopped {
		d.Status = appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
	}
	return d
}
