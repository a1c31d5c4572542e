// Package brokermetrics has the broker's Prometheus metrics. Nothing in them names a room.
package brokermetrics

// The names of all metrics.
const (
	nameBuild           = "roomscaler_build_info"
	nameRequests        = "roomscaler_broker_requests_total"
	nameRequestSeconds  = "roomscaler_broker_request_duration_seconds"
	nameCreates         = "roomscaler_broker_creates_total"
	nameEvents          = "roomscaler_broker_events_total"
	nameSweepSeconds    = "roomscaler_broker_sweep_duration_seconds"
	nameSweepFailures   = "roomscaler_broker_sweep_failures_total"
	nameLooks           = "roomscaler_broker_looks_total"
	nameStoreErrors     = "roomscaler_broker_store_errors_total"
	nameInstances       = "roomscaler_pool_instances"
	nameSessions        = "roomscaler_pool_sessions"
	nameParticipants    = "roomscaler_pool_participants"
	namePins            = "roomscaler_pool_rooms"
	nameReserved        = "roomscaler_pool_reserved_participants"
	nameQueueRooms      = "roomscaler_pool_queue_rooms"
	nameDesired         = "roomscaler_pool_desired_instances"
	nameTarget          = "roomscaler_pool_target_sessions"
	nameRebuilding      = "roomscaler_pool_rebuilding"
	nameInstanceSession = "roomscaler_instance_sessions"
	nameInstanceRooms   = "roomscaler_instance_rooms"
	nameInstanceAge     = "roomscaler_instance_age_seconds"
)
