package pki

import (
	"context"
	"crypto"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"sigs.k8s.io/cluster-api/provider/crash"
)

// AlgorithmAnnotation on a Cluster or its control plane object chooses the algorithm of the keys that are
// generated for that cluster. The value is a KeyAlgorithm.
const AlgorithmAnnotation = "cluster.x-k8s.io/key-algorithm"

// AlgorithmUsage is the help of the flag --key-algorithm.
const AlgorithmUsage = "Algorithm of the keys that are generated for clusters, unless the annotation " + AlgorithmAnnotation +
	" of the cluster chooses another: ECDSA-P256, ECDSA-P384, RSA-2048, RSA-3072 or RSA-4096"

const (
	// stock is how many keys of an algorithm are kept ahead of need: what one cluster takes.
	stock = 5
	// restFactor is how many times as long as a key took the next one is put off, so that keys for later leave most
	// of a processor to what is waited for now. A low priority of the thread would be worse: the garbage collector
	// waits for every thread that runs Go code.
	restFactor = 3
	// afterFailure is the pause after a key could not be generated.
	afterFailure = time.Minute
)

// Keys generates the private keys of clusters: which kind is the manager's choice or the cluster's, and RSA keys are
// generated ahead of need, so that nothing waits for one unless more clusters than usual are made at once. Only
// algorithms that are in use are kept in stock, and only in the process that runs Start.
//
// A nil *Keys generates keys of the DefaultAlgorithm algorithm when they are asked for.
type Keys struct {
	algorithm KeyAlgorithm
	clock     clock.Clock
	generate  func(KeyAlgorithm) (crypto.Signer, error)

	mu     sync.Mutex
	ready  map[KeyAlgorithm][]crypto.Signer
	inUse  []KeyAlgorithm
	wanted chan struct{}
}

// NewKeys is Keys whose algorithm is this one where a cluster chooses none.
func NewKeys(algorithm KeyAlgorithm) *Keys { return newKeys(algorithm, clock.RealClock{}, newKey) }

func newKeys(algorithm KeyAlgorithm, c clock.Clock, generate func(KeyAlgorithm) (crypto.Signer, error)) *Keys {
	k := &Keys{algorithm: algorithm, clock: c, generate: generate, ready: map[KeyAlgorithm][]crypto.Signer{}, wanted: make(chan struct{}, 1)}
	k.use(algorithm)
	return k
}

// algorithmFor is the one that the first of these objects chooses which chooses any, the manager's otherwise. The error
// names the object whose choice is not known.
func (k *Keys) algorithmFor(objects ...metav1.Object) (KeyAlgorithm, error) {
	for _, o := range objects {
		value, ok := o.GetAnnotations()[AlgorithmAnnotation]
		if !ok {
			continue
		}
		var chosen KeyAlgorithm
		if err := chosen.Set(value); err != nil {
			return "", fmt.Errorf("annotation %s of %s %s/%s: %w", AlgorithmAnnotation, kindOf(o), o.GetNamespace(), o.GetName(), err)
		}
		return chosen, nil
	}
	if k == nil || k.algorithm == "" {
		return DefaultAlgorithm, nil
	}
	return k.algorithm, nil
}

// kindOf is the kind of an object, which typed objects do not carry when they come from a cache.
func kindOf(o metav1.Object) string {
	name := fmt.Sprintf("%T", o)
	return name[strings.LastIndexByte(name, '.')+1:]
}

// key is a key from stock if there is one, or a fresh one.
func (k *Keys) key(algorithm KeyAlgorithm) (crypto.Signer, error) {
	if k == nil {
		return newKey(algorithm)
	}
	if key := k.take(algorithm); key != nil {
		return key, nil
	}
	return k.generate(algorithm)
}

// take takes a key out of the stock, which is filled again.
func (k *Keys) take(algorithm KeyAlgorithm) crypto.Signer {
	k.use(algorithm)
	k.mu.Lock()
	defer k.mu.Unlock()
	keys := k.ready[algorithm]
	if len(keys) == 0 {
		return nil
	}
	key := keys[len(keys)-1]
	keys[len(keys)-1] = nil // it is the cluster's alone now
	k.ready[algorithm] = keys[:len(keys)-1]
	return key
}

// use has keys of an algorithm kept in stock, if they take long to generate.
func (k *Keys) use(algorithm KeyAlgorithm) {
	if algorithm.rsaBits() == 0 {
		return
	}
	k.mu.Lock()
	if !slices.Contains(k.inUse, algorithm) {
		k.inUse = append(k.inUse, algorithm)
	}
	k.mu.Unlock()
	select {
	case k.wanted <- struct{}{}:
	default:
	}
}

// Start fills the stock until the context ends. It implements manager.Runnable; only the leader needs keys, so it is
// run by the leader alone.
func (k *Keys) Start(ctx context.Context) error {
	for {
		algorithm := k.missing()
		if algorithm == "" {
			select {
			case <-ctx.Done():
				return nil
			case <-k.wanted:
			}
			continue
		}
		begun := k.clock.Now()
		pause := afterFailure
		if err := k.add(algorithm); err == nil {
			pause = restFactor * k.clock.Since(begun)
		} else {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot generate a key ahead of need", "algorithm", algorithm)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-k.clock.After(pause):
		}
	}
}

// missing is an algorithm of which there are not enough keys; empty when there is none.
func (k *Keys) missing() KeyAlgorithm {
	k.mu.Lock()
	defer k.mu.Unlock()
	var least KeyAlgorithm
	for _, a := range k.inUse {
		if n := len(k.ready[a]); n < stock && (least == "" || n < len(k.ready[least])) {
			least = a
		}
	}
	return least
}

// add generates a key. A panic is an error: this goroutine is nobody's reconcile, and would end the process.
func (k *Keys) add(algorithm KeyAlgorithm) (err error) {
	defer crash.Recover("generating a key", &err)
	key, err := k.generate(algorithm)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ready[algorithm] = append(k.ready[algorithm], key)
	return nil
}
