package machineset

import (
	"context"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/naming"
	"sigs.k8s.io/cluster-api/provider/step"
)

// generationAnnotation is, on a MachineSet, the generation of names that its next Machines get, and on a Machine that of its
// own name. Names of different generations differ. Without it, it is generation 0.
const generationAnnotation = "machineset.cluster.x-k8s.io/names-generation"

// retire lets the names of Machines that leave not come back: a Node, a disk or a DNS record of that name may outlive them.
// As soon as a Machine of the current generation of names leaves, or is about to, the next generation begins. Machines of
// earlier generations change nothing, so that is one write however many Machines leave, and it comes before the first
// deletion.
func (c *Controller) retire(_ context.Context, s *scope) (step.Result, error) {
	s.generation = currentGeneration(s.set, s.machines)
	if !c.leaving(s) {
		return step.Done(), nil
	}
	s.generation++
	metav1.SetMetaDataAnnotation(&s.set.ObjectMeta, generationAnnotation, strconv.Itoa(s.generation))
	return step.Checkpoint(), nil
}

// leaving is whether a Machine of the current generation of names leaves, is about to, or has left.
func (c *Controller) leaving(s *scope) bool {
	deleted := map[types.UID]bool{}
	for _, m := range s.change.delete {
		deleted[m.UID] = true
	}
	staying := 0
	for _, m := range s.machines {
		if generationOf(m) != s.generation {
			continue
		}
		if !m.DeletionTimestamp.IsZero() || deleted[m.UID] || condition.IsFalse(m, clusterv1.MachineOwnerRemediatedCondition) {
			return true
		}
		staying++
	}
	return s.change.create > 0 && c.names.most(s.set.UID, s.generation) > staying
}

// currentGeneration is the highest generation of names that set and Machines tell of: should the annotation be lost, the
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

// nameOf is the name of the Machine of a generation with an ordinal.
func nameOf(set *clusterv1.MachineSet, generation, ordinal int) string {
	parts := []string{string(set.UID), "", strconv.Itoa(ordinal)}
	if generation > 0 {
		parts[1] = strconv.Itoa(generation)
	}
	return naming.WithSuffix(set.Name, naming.Suffix(parts...))
}

// remembered is for how many MachineSets this process remembers how many names are in use.
const remembered = 8192

// namesInUse remembers of MachineSets how many names of a generation were in use at least. A Machine that somebody deletes
// and that is gone before its MachineSet was reconciled is missed by this alone. No number of Machines follows from it:
// forgetting it costs, at worst, that such a Machine's name is used again.
type namesInUse struct {
	mu   sync.Mutex
	sets *lru.Cache // of use, by UID
}

type use struct{ generation, names int }

func newNamesInUse() *namesInUse { return &namesInUse{sets: lru.New(remembered)} }

// most is how many names of a generation were in use at the same time, as far as is known.
func (n *namesInUse) most(set types.UID, generation int) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if last, ok := n.sets.Get(set); ok && last.(use).generation == generation {
		return last.(use).names
	}
	return 0
}

// saw keeps how many names of a generation are in use.
func (n *namesInUse) saw(set types.UID, generation int, machines []*clusterv1.Machine) {
	names := 0
	for _, m := range machines {
		if generationOf(m) == generation {
			names++
		}
	}
	names = max(names, n.most(set, generation))
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sets.Add(set, use{generation: generation, names: names})
}
