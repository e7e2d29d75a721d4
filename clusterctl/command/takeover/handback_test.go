package takeover

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

func TestHandBack(t *testing.T) {
	for _, tc := range []struct {
		reason string
		stored string
		dryRun bool
		// manager is whether one of this version adds again what is removed; removed, whether nothing has to be; stopped, whether webhooks are
		// unavailable.
		manager, removed, stopped bool
		out, errOut, err          string
		left                      []string
	}{
		{reason: "it is removed", stored: "v1beta1", errOut: "1 of 1 objects changed: stop the managers of this version, and run the command again to check that nothing was added meanwhile\n"},
		{
			reason: "nothing is left", stored: "v1beta1", removed: true,
			errOut: "None of 1 objects has what v1.7.9 does not know: its managers can start when those of this version have stopped\n",
		},
		{
			reason: "managers are stopped, so that their webhooks do not respond", stored: "v1beta1", stopped: true,
			left: []string{clusterv1.MachineSetFinalizer},
			err: "cannot remove finalizer cluster.x-k8s.io/machineset from MachineSet ns/s: Internal error occurred: failed calling webhook\n" +
				"the webhooks of Cluster API check each change: start the managers of this version again",
		},
		{
			reason: "a dry run shows it", stored: "v1beta1", dryRun: true, left: []string{clusterv1.MachineSetFinalizer},
			out: "remove finalizer cluster.x-k8s.io/machineset from MachineSet ns/s\n", errOut: "1 of 1 objects would be changed\n",
		},
		{
			reason: "v1.7 could not read the objects", stored: "v1beta2", left: []string{clusterv1.MachineSetFinalizer},
			err: "nothing is changed, because v1.7.9 cannot take over yet:\n  objects of clusters.cluster.x-k8s.io may be stored in v1beta2",
		},
		{
			reason: "a manager adds it again", stored: "v1beta1", manager: true, left: []string{clusterv1.MachineSetFinalizer},
			err: "managers have added what was removed to 1 objects again",
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			set := object.Builder{Namespace: "ns"}.MachineSet("s", func(s *clusterv1.MachineSet) { s.Finalizers = []string{clusterv1.MachineSetFinalizer} })
			if tc.removed {
				set.Finalizers = nil
			}
			objects := []client.Object{set}
			for plural, kind := range map[string]string{
				"clusters": "Cluster", "machines": "Machine", "machinesets": "MachineSet", "machinedeployments": "MachineDeployment",
			} {
				objects = append(objects, &apiextensionsv1.CustomResourceDefinition{
					ObjectMeta: metav1.ObjectMeta{Name: plural + ".cluster.x-k8s.io"},
					Spec: apiextensionsv1.CustomResourceDefinitionSpec{
						Names:    apiextensionsv1.CustomResourceDefinitionNames{Kind: kind},
						Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1beta2", Storage: true}},
					},
					Status: apiextensionsv1.CustomResourceDefinitionStatus{StoredVersions: []string{tc.stored}},
				})
			}
			s := fakeapi.New(t, fakeapi.Options{Kinds: []func(*runtime.Scheme) error{apiextensionsv1.AddToScheme}, Objects: objects})
			s.Before = func(r fakeapi.Request) error {
				if tc.stopped && r.IsWrite() {
					return apierrors.NewInternalError(errors.New("failed calling webhook"))
				}
				return nil
			}
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
