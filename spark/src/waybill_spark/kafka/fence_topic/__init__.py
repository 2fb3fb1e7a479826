"""`waybill.fences`: the fences of sinks that cannot keep one themselves."""
