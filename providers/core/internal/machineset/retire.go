package machineset

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/nametemplate"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/naming"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// generationAnnotation is the generation of names: on a MachineSet, that of its next Machines; on a Machine, that of its own
// name. Names of different generations differ. Without the annotation, the generation is 0.
const generationAnnotation = "machineset.cluster.x-k8s.io/names-generation"

// retire prevents the reuse of names of deleted Machines: a Node, a disk or a DNS record of that name may outlive the Machine.
// It starts the next generation of names before the first Machine of the current generation is deleted, or when one is found to
// be deleted. Deletions of Machines of earlier generations change nothing, so there is one write for any number of deletions.
func (c *Controller) retire(_ context.Context, s *scope) (step.Result, error) {
	s.generation = currentGeneration(s.set, s.machines)
	if !c.leaving(s) {
		return step.Done(), nil
	}
	s.generation++
	metav1.SetMetaDataAnnotation(&s.set.ObjectMeta, generationAnnotation, strconv.Itoa(s.generation))
	return step.Checkpoint(), nil
}

// leaving reports whether a Machine of the current generation of names is going to be deleted or to move to
// another set, is being deleted, or was deleted.
func (c *Controller) leaving(s *scope) bool {
	deleted := map[types.UID]bool{}
	for _, m := range s.change.delete {
		deleted[m.UID] = true
	}
	for _, m := range s.change.move {
		deleted[m.UID] = true // It keeps its name in another set.
	}
	staying := 0
	for _, m := range s.machines {
		if generationOf(m) != s.generation {
			continue
		}
		if !m.DeletionTimestamp.IsZero() || deleted[m.UID] || condition.IsFalse(m, clusterv1.MachineOwnerRemediatedV1Beta1Condition) {
			return true
		}
		staying++
	}
	return s.change.create > 0 && c.names.peak(s.set.UID, s.generation) > staying
}

// currentGeneration returns the highest generation of names of the set and its Machines: if the set loses its annotation, the
// Machines still have theirs.
func currentGeneration(set *clusterv1.MachineSet, machines []*clusterv1.Machine) int {
	generation := generationOf(set)
	for _, m := range machines {
		generation = max(generation, generationOf(m))
	}
	return generation
}

func generationOf(obj metav1.Object) int {
	n, err := strconv.Atoi(obj.GetAnnotations()[generationAnnotation])
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// nameOf returns the name of a Machine from its generation and ordinal, by the template of the set if it has one.
func nameOf(set *clusterv1.MachineSet, generation, ordinal int) (string, error) {
	parts := []string{string(set.UID), "", strconv.Itoa(ordinal)}
	if generation > 0 {
		parts[1] = strconv.Itoa(generation)
	}
	if restored := set.Annotations[clusterv1.RestoredAnnotation]; restored != "" {
		parts = append(parts, restored) // Machines may have the names that were next when the backup was made.
	}
	random := naming.Suffix(parts...)
	if set.Spec.MachineNaming.Template == "" {
		return naming.WithSuffix(set.Name, random), nil
	}
	data := nametemplate.OfMachine(set.Spec.ClusterName, "machineSet", set.Name)
	name, err := nametemplate.Render(set.Spec.MachineNaming.Template, data, random)
	if err != nil {
		return "", step.Terminal(fmt.Errorf("spec.machineNaming.template of MachineSet %s: %w", set.Name, err))
	}
	return name, nil
}

// maxTrackedSets is the maximum number of MachineSets in namesInUse.
const maxTrackedSets = 8192

// namesInUse records for each MachineSet the peak number of names of a generation in use. It is the only way to notice a Machine
// that a user deleted and that was gone before the next reconcile of its MachineSet. No number of Machines depends on it: if a
// record is lost, the name of such a Machine may be reused.
type namesInUse struct {
	mu   sync.Mutex
	sets *lru.Cache // of use, by UID
}

type use struct{ generation, names int }

func newNamesInUse() *namesInUse { return &namesInUse{sets: lru.New(maxTrackedSets)} }

// peak returns the recorded maximum of names of a generation in use at the same time.
func (n *namesInUse) peak(set types.UID, generation int) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if last, ok := n.sets.Get(set); ok && last.(use).generation == generation {
		return last.(use).names
	}
	return 0
}

// observe records how many names of a generation are in use.
func (n *namesInUse) observe(set types.UID, generation int, machines []*clusterv1.Machine) {
	names := 0
	for _, m := range machines {
		if generationOf(m) == generation {
			names++
		}
	}
	names = max(names, n.peak(set, generation))
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sets.Add(set, use{generation: generation, names: names})
}
