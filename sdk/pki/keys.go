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

	"sigs.k8s.io/cluster-api/sdk/failsafe"
)

// AlgorithmAnnotation on a Cluster or its control plane object chooses the algorithm of the keys that are
// generated for that cluster. The value is a KeyAlgorithm.
const AlgorithmAnnotation = "cluster.x-k8s.io/key-algorithm"

// AlgorithmUsage is the help of the flag --key-algorithm.
const AlgorithmUsage = "Algorithm of the keys that are generated for clusters, unless the annotation " + AlgorithmAnnotation +
	" of the cluster chooses another: ECDSA-P256, ECDSA-P384, RSA-2048, RSA-3072 or RSA-4096"

const (
	// stock is the number of keys per algorithm that are generated in advance, which is what one cluster needs.
	stock = 5
	// restFactor is the pause between keys, as a multiple of the time that the last one took, so that generating keys in
	// advance leaves most of a CPU to more urgent work. A low thread priority would be worse: the garbage collector
	// waits for every thread that runs Go code.
	restFactor = 3
	// afterFailure is the pause after a failure.
	afterFailure = time.Minute
)

// Keys generates the private keys of clusters, with the algorithm that the manager or the cluster chooses. RSA keys are
// generated in advance, so that creating a cluster does not wait for them, unless many are created at once. Only
// algorithms in use are generated in advance, and only while Start runs.
//
// A nil *Keys generates keys with DefaultAlgorithm on demand.
type Keys struct {
	algorithm KeyAlgorithm
	clock     clock.Clock
	generate  func(KeyAlgorithm) (crypto.Signer, error)

	mu     sync.Mutex
	ready  map[KeyAlgorithm][]crypto.Signer
	inUse  []KeyAlgorithm
	wanted chan struct{}
}

// NewKeys returns Keys with the default algorithm of a manager.
func NewKeys(algorithm KeyAlgorithm) *Keys { return newKeys(algorithm, clock.RealClock{}, newKey) }

func newKeys(algorithm KeyAlgorithm, c clock.Clock, generate func(KeyAlgorithm) (crypto.Signer, error)) *Keys {
	k := &Keys{algorithm: algorithm, clock: c, generate: generate, ready: map[KeyAlgorithm][]crypto.Signer{}, wanted: make(chan struct{}, 1)}
	k.use(algorithm)
	return k
}

// algorithmFor returns the algorithm of the first object with AlgorithmAnnotation, or the manager's. The error
// has the object whose algorithm is unknown.
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

// kindOf returns the kind of an object by its Go type: typed objects from a cache do not contain it.
func kindOf(o metav1.Object) string {
	name := fmt.Sprintf("%T", o)
	return name[strings.LastIndexByte(name, '.')+1:]
}

// key returns a key from stock, or a new one if there is none.
func (k *Keys) key(algorithm KeyAlgorithm) (crypto.Signer, error) {
	if k == nil {
		return newKey(algorithm)
	}
	if key := k.take(algorithm); key != nil {
		return key, nil
	}
	return k.generate(algorithm)
}

// take removes a key from the stock, which is then refilled.
func (k *Keys) take(algorithm KeyAlgorithm) crypto.Signer {
	k.use(algorithm)
	k.mu.Lock()
	defer k.mu.Unlock()
	keys := k.ready[algorithm]
	if len(keys) == 0 {
		return nil
	}
	key := keys[len(keys)-1]
	keys[len(keys)-1] = nil // The key must not stay in memory here.
	k.ready[algorithm] = keys[:len(keys)-1]
	return key
}

// use adds an algorithm to the stock, if its keys take long to generate.
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

// Start fills the stock until the context ends. It implements manager.Runnable. Only the leader needs keys, so it is
// only run by the leader.
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
			ctrl.LoggerFrom(ctx).Error(err, "Cannot generate a key in advance", "algorithm", algorithm)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-k.clock.After(pause):
		}
	}
}

// missing returns an algorithm without enough keys in stock; empty if there is none.
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

// add generates a key. A panic becomes an error, because in this goroutine it would end the process.
func (k *Keys) add(algorithm KeyAlgorithm) (err error) {
	defer failsafe.Recover("generating a key", &err)
	key, err := k.generate(algorithm)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ready[algorithm] = append(k.ready[algorithm], key)
	return nil
}
