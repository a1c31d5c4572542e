package scaler

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// takenError: the pool belongs to another ScaledObject.
type takenError struct {
	pool  string
	owner Ref
}

func (e *takenError) Error() string {
	return fmt.Sprintf("ScaledObject %s already scales pool %s; delete one of the two, or wait until it has been silent for %s", e.owner, e.pool, takeover)
}

// unknownError: there is no stored decision that may be repeated.
type unknownError struct {
	pool  string
	cause error // nil: nobody has looked yet
}

func (e *unknownError) Error() string {
	if e.cause == nil {
		return fmt.Sprintf("no decision for pool %s yet; the number of replicas stays as it is", e.pool)
	}
	return fmt.Sprintf("no decision for pool %s that is younger than %s, the number of replicas stays as it is: %v", e.pool, ServeTTL, e.cause)
}

func (e *unknownError) Unwrap() error { return e.cause }

var errTooMany = errors.New("too many ScaledObjects call this scaler; give each group of pools a scaler of its own")

// statusOf is the one table from errors to gRPC statuses. What is not listed is
// UNAVAILABLE, which KEDA hands to the autoscaler as "nothing is known".
func statusOf(err error) error {
	var (
		target  *TargetError
		taken   *takenError
		refused *RefusedError
	)
	code := codes.Unavailable
	switch {
	case errors.As(err, &target):
		code = codes.InvalidArgument
	case errors.As(err, &taken), errors.As(err, &refused):
		code = codes.FailedPrecondition
	case errors.Is(err, errTooMany):
		code = codes.ResourceExhausted
	}
	return status.Error(code, err.Error())
}
