"""Job planning, driving a run, statistics, validity, roofline."""
