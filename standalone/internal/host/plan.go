package host

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// managerContainer is the name of a provider's container in the provider contract.
const managerContainer = "manager"

// plan is what to run for a Deployment.
type plan struct {
	deployment types.NamespacedName
	program    string
	container  corev1.Container
	// pod is the Pod that a cluster with Nodes would have: environment variables may refer to it.
	pod *corev1.Pod
	// hash changes if the component must be replaced.
	hash string
	// grace is how long the component may take to stop before that is logged.
	grace time.Duration
}

// planFor returns the plan of a Deployment, or an error for the user if the component is not built in.
func planFor(d *appsv1.Deployment, programs map[string]Program) (*plan, error) {
	spec := d.Spec.Template.Spec
	container, ok := managerOf(spec)
	if !ok {
		return nil, fmt.Errorf("the Deployment has no container")
	}
	program := imageName(container.Image)
	if _, known := programs[program]; !known {
		return nil, unknownImage(container.Image, programs)
	}
	hash := planHash(d)
	p := &plan{
		deployment: types.NamespacedName{Namespace: d.Namespace, Name: d.Name},
		program:    program,
		container:  container,
		hash:       hash,
		grace:      30 * time.Second,
	}
	if s := spec.TerminationGracePeriodSeconds; s != nil {
		p.grace = time.Duration(*s) * time.Second
	}
	p.pod = &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: d.Name + "-" + hash, Namespace: d.Namespace,
			UID:    types.UID(uuid.NewSHA1(uuid.NameSpaceOID, []byte(string(d.UID)+hash)).String()),
			Labels: d.Spec.Template.Labels, Annotations: d.Spec.Template.Annotations,
		},
		Spec: *spec.DeepCopy(),
	}
	if p.pod.Spec.ServiceAccountName == "" {
		p.pod.Spec.ServiceAccountName = "default"
	}
	return p, nil
}

// ProgramOf returns the name of the program that a Pod of a provider runs: the last element of the name of its manager's image.
func ProgramOf(pod corev1.PodSpec) string {
	container, ok := managerOf(pod)
	if !ok {
		return ""
	}
	return imageName(container.Image)
}

// managerOf returns the container of the manager, and reports whether there is a container.
func managerOf(pod corev1.PodSpec) (corev1.Container, bool) {
	if len(pod.Containers) == 0 {
		return corev1.Container{}, false
	}
	if at := slices.IndexFunc(pod.Containers, func(c corev1.Container) bool { return c.Name == managerContainer }); at >= 0 {
		return pod.Containers[at], true
	}
	return pod.Containers[0], true
}

// unknownImage explains what to do about a component that is not built in.
func unknownImage(image string, programs map[string]Program) error {
	return fmt.Errorf("capi does not run containers, and image %q is not one of its built-in components (%s): "+
		"to use this provider, install it on a cluster with Nodes, and move there with clusterctl move",
		image, strings.Join(slices.Sorted(maps.Keys(programs)), ", "))
}

// imageName is the last element of an image's name, without registry, tag and digest.
func imageName(image string) string {
	name, _, _ := strings.Cut(image, "@")
	name = name[strings.LastIndex(name, "/")+1:]
	name, _, _ = strings.Cut(name, ":")
	return name
}

// planHash identifies the Deployment and its Pod template, like the name of a ReplicaSet.
func planHash(d *appsv1.Deployment) string {
	encoded, err := json.Marshal(d.Spec.Template)
	if err != nil {
		// Objects from the API server can always be encoded as JSON.
		panic(fmt.Sprintf("encoding the template of Deployment %s/%s: %v", d.Namespace, d.Name, err))
	}
	sum := sha256.Sum256(append(encoded, d.UID...))
	return hex.EncodeToString(sum[:5])
}
