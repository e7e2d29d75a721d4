package docker

import (
	"context"
	"fmt"
	"io"

	"github.com/distribution/reference"
	"github.com/moby/moby/client"

	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
)

// EnsureImage implements engine.Engine.
func (d *Docker) EnsureImage(ctx context.Context, image string) error {
	attempt := fmt.Sprintf("cannot find image %q", image)
	if err := checkImage(attempt, image); err != nil {
		return err
	}
	err := d.within(ctx, shortTimeout, attempt, func(ctx context.Context) error {
		_, err := d.api.ImageInspect(ctx, image)
		return err
	})
	if !engine.IsNotFound(err) {
		return err
	}
	return d.within(ctx, pullTimeout, fmt.Sprintf("cannot pull image %q", image), func(ctx context.Context) error {
		pull, err := d.api.ImagePull(ctx, image, client.ImagePullOptions{})
		if err == nil {
			err = pull.Wait(ctx)
			_ = pull.Close() // It is read to its end, or abandoned.
		}
		if err == nil {
			return nil
		}
		if reason, _ := d.reason(err); reason == engine.Unknown {
			err = fmt.Errorf("%w: %s", err, registryAdvice)
		}
		return err
	})
}

// SaveImage implements engine.Engine.
func (d *Docker) SaveImage(ctx context.Context, image string, to io.Writer) error {
	attempt := fmt.Sprintf("cannot save image %q", image)
	if err := checkImage(attempt, image); err != nil {
		return err
	}
	saved, err := d.api.ImageSave(ctx, []string{image})
	if err != nil {
		return d.classify(attempt, err)
	}
	defer func() { _ = saved.Close() }()
	_, err = io.Copy(to, saved)
	return d.classify(attempt, err)
}

// checkImage rejects everything that is not the reference or ID of an image: it becomes part of the path of a request.
func checkImage(attempt, image string) error {
	if _, err := reference.ParseAnyReference(image); err != nil {
		return &engine.Error{Reason: engine.Invalid, Attempt: attempt, Err: err}
	}
	return nil
}
