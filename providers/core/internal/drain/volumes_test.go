package drain

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// attachment attaches a PersistentVolume to a Node.
func attachment(volume, node string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "csi-" + volume},
		Spec:       storagev1.VolumeAttachmentSpec{NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}},
	}
}

// bound returns a claim, and the volume that it is bound to.
func bound(claim, volume string) []runtime.Object {
	csi := &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: "handle-" + volume}
	return []runtime.Object{
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: claim}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volume}},
		&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume}, Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: csi}}},
	}
}

// claims mounts a claim.
func claims(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		source := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
	}
}

// ephemeral mounts an ephemeral volume, whose claim has the name of the Pod and this name.
func ephemeral(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}})
	}
}

// attaches lists PersistentVolumes of csi.example.com in the status of a Node.
func attaches(volumes ...string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		for _, v := range volumes {
			n.Status.VolumesAttached = append(n.Status.VolumesAttached, corev1.AttachedVolume{Name: corev1.UniqueVolumeName("kubernetes.io/csi/csi.example.com^handle-" + v)})
		}
	}
}

// attachesAs lists a volume in the status of a Node.
func attachesAs(name string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.VolumesAttached = append(n.Status.VolumesAttached, corev1.AttachedVolume{Name: corev1.UniqueVolumeName(name)})
	}
}

// servedBy is the VolumeAttachment that Kubernetes makes for the handle of attaches.
func servedBy(volume, on string) *storagev1.VolumeAttachment {
	a := attachment(volume, on)
	a.Name = fmt.Sprintf("csi-%x", sha256.Sum256([]byte("handle-"+volume+"csi.example.com"+on)))
	return a
}

// inTree returns the claim data, and the in-tree volume pv-1 that it is bound to.
func inTree(source func(*corev1.PersistentVolumeSource)) []runtime.Object {
	objects := bound("data", "pv-1")
	if volume, ok := objects[1].(*corev1.PersistentVolume); ok {
		volume.Spec.CSI = nil
		source(&volume.Spec.PersistentVolumeSource)
	}
	return objects
}

func awsDisk(s *corev1.PersistentVolumeSource) {
	s.AWSElasticBlockStore = &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"}
}

func iscsi(s *corev1.PersistentVolumeSource) {
	s.ISCSI = &corev1.ISCSIPersistentVolumeSource{TargetPortal: "10.0.0.1:3260", IQN: "iqn.x", Lun: 2}
}

func fibreChannel(s *corev1.PersistentVolumeSource) {
	s.FC = &corev1.FCVolumeSource{TargetWWNs: []string{"w1", "w2"}, Lun: ptr.To[int32](3)}
}

func fibreChannelByID(s *corev1.PersistentVolumeSource) {
	s.FC = &corev1.FCVolumeSource{WWIDs: []string{"i1"}}
}

func TestVolumes(t *testing.T) {
	skipped := Rules{{name: "r", drain: clusterv1.MachineDrainRuleDrainConfig{Behavior: clusterv1.MachineDrainRuleDrainBehaviorSkip}}}
	objects := func(more ...runtime.Object) []runtime.Object { return append(bound("data", "pv-1"), more...) }
	for name, tc := range map[string]struct {
		reason  string
		node    *corev1.Node
		rules   Rules
		objects []runtime.Object
		fails   error // of the list of VolumeAttachments
		lacks   bool  // The API server has no group of storage.
		want    []string
		err     bool
	}{
		"None":           {reason: "nothing is attached", node: node(), objects: objects(pod("db", claims("data"), controlled("DaemonSet")))},
		"ByTheNode":      {reason: "the Node reports a volume", node: node(attaches("pv-1")), objects: objects(), want: []string{"kubernetes.io/csi/csi.example.com^handle-pv-1"}},
		"ByAnAttachment": {reason: "the Node no longer reports a volume that is still being detached", node: node(), objects: objects(attachment("pv-1", "node-1")), want: []string{"pv-1"}},
		"Both":           {reason: "a volume is named once", node: node(attaches("pv-1")), objects: objects(attachment("pv-1", "node-1")), want: []string{"pv-1"}},
		"OtherNode":      {reason: "another Node has the volume", node: node(), objects: objects(attachment("pv-1", "node-2"))},
		"Inline":         {reason: "an inline volume has no PersistentVolume", node: node(), objects: objects(&storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "inline"}, Spec: storagev1.VolumeAttachmentSpec{NodeName: "node-1"}}), want: []string{"inline"}},
		"OfADaemonSet":   {reason: "Pods of DaemonSets stay", node: node(attaches("pv-1")), objects: objects(attachment("pv-1", "node-1"), pod("db", claims("data"), controlled("DaemonSet")))},
		"Static":         {reason: "static Pods stay", node: node(attaches("pv-1")), objects: objects(pod("db", claims("data"), mirrored))},
		"Skipped":        {reason: "a rule lets the Pod stay", node: node(attaches("pv-1")), rules: skipped, objects: objects(attachment("pv-1", "node-1"), pod("db", claims("data")))},
		"Labeled":        {reason: "its label lets the Pod stay", node: node(attaches("pv-1")), objects: objects(pod("db", claims("data"), labeled("cluster.x-k8s.io/drain=skip")))},
		"Ephemeral":      {reason: "the claim of an ephemeral volume is named after the Pod", node: node(attaches("pv-2")), rules: skipped, objects: objects(append(bound("db-tmp", "pv-2"), pod("db", ephemeral("tmp")))...)},
		"Completed":      {reason: "the volumes of a Pod that has completed are detached", node: node(attaches("pv-1")), rules: skipped, objects: objects(pod("db", claims("data"), finished)), want: []string{"kubernetes.io/csi/csi.example.com^handle-pv-1"}},
		"OfOthers":       {reason: "only the volumes of Pods that stay do not count", node: node(attaches("pv-1", "pv-2")), objects: objects(append(bound("other", "pv-2"), attachment("pv-1", "node-1"), attachment("pv-2", "node-1"), pod("db", claims("data"), labeled("cluster.x-k8s.io/drain=skip")), pod("other", claims("other")))...), want: []string{"pv-2"}},
		"Unbound":        {reason: "a claim without a volume is no reason", node: node(attaches("pv-1")), rules: skipped, objects: []runtime.Object{&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data"}}, pod("db", claims("data"), claims("missing"))}, want: []string{"kubernetes.io/csi/csi.example.com^handle-pv-1"}},
		"InTree": {reason: "a driver serves an in-tree volume, whose spec does not name the driver", node: node(attaches("pv-1")), rules: skipped,
			objects: append(inTree(awsDisk), servedBy("pv-1", "node-1"), pod("db", claims("data")))},
		"InTreeLeaving": {reason: "an in-tree volume of a Pod that leaves counts", node: node(attaches("pv-1")),
			objects: append(inTree(awsDisk), servedBy("pv-1", "node-1"), pod("db", claims("data"))), want: []string{"pv-1"}},
		"ISCSI": {reason: "no driver attaches it", node: node(attachesAs("kubernetes.io/iscsi/10.0.0.1:3260:iqn.x:2")), rules: skipped,
			objects: append(inTree(iscsi), pod("db", claims("data")))},
		"FibreChannel": {reason: "no driver attaches it", node: node(attachesAs("kubernetes.io/fc/[w1 w2]:3")), rules: skipped,
			objects: append(inTree(fibreChannel), pod("db", claims("data")))},
		"FibreChannelByID": {reason: "no driver attaches it", node: node(attachesAs("kubernetes.io/fc/[i1]")), rules: skipped,
			objects: append(inTree(fibreChannelByID), pod("db", claims("data")))},
		"OtherInTree": {reason: "a volume that cannot be told apart counts", node: node(attachesAs("kubernetes.io/aws-ebs/vol-1")), rules: skipped,
			objects: append(inTree(awsDisk), pod("db", claims("data"))), want: []string{"kubernetes.io/aws-ebs/vol-1"}},
		"WithoutTheKind":  {reason: "the API server has no VolumeAttachments", node: node(attaches("pv-1")), objects: objects(), fails: apierrors.NewNotFound(storagev1.Resource("volumeattachments"), ""), lacks: true, want: []string{"kubernetes.io/csi/csi.example.com^handle-pv-1"}},
		"UnknownGroup":    {reason: "an API server may answer with any error for a group that it lacks", node: node(), objects: objects(), fails: apierrors.NewInternalError(errors.New("unknown group")), lacks: true},
		"Broken":          {reason: "an internal error says nothing about what is attached", node: node(), objects: objects(), fails: apierrors.NewInternalError(errors.New("etcd")), err: true},
		"CannotBeListed":  {reason: "what cannot be read may be attached", node: node(), objects: objects(), fails: errors.New("timeout"), err: true},
		"WithoutAnObject": {reason: "a volume whose claim is gone counts", node: node(attaches("pv-9")), rules: skipped, objects: []runtime.Object{pod("db", claims("gone"))}, want: []string{"kubernetes.io/csi/csi.example.com^handle-pv-9"}},
	} {
		t.Run(name, func(t *testing.T) {
			set := fake.NewClientset(tc.objects...)
			if !tc.lacks {
				set.Resources = []*metav1.APIResourceList{{GroupVersion: storagev1.SchemeGroupVersion.String()}}
			}
			if tc.fails != nil {
				set.PrependReactor("list", "volumeattachments", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.fails })
			}
			got, err := volumes(t.Context(), set, tc.node, tc.rules)
			if diff := cmp.Diff(tc.want, got); diff != "" || (err != nil) != tc.err {
				t.Errorf("%s: error %v, -want +got:\n%s", tc.reason, err, diff)
			}
		})
	}
}
